package loop

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// A Deregister waits for the hold of a pipe, so a run may not be longer than the post of
// an array.
func TestARunEndsWhenAPostersBudgetIsUsedUp(t *testing.T) {
	a, b := pair(t, nil)
	runner := a.qp.(hw.Runner)
	run := func(n int) (taken int) {
		sge := a.sge(0, n)
		for runner.PostRun(hw.OpWrite, hw.WRMore, 0, &sge, 0, 1, b.mr.RKey(), b.addr(0)) == 1 {
			taken++
		}
		return taken
	}
	assert.Equal(t, maxOps, run(1))
	assert.Equal(t, 2, run(int(a.qp.(*queuePair).out.Load().budget/2)))
}

// reuser is a sink whose owner fills a request's segment again, for another request, as
// soon as the request has completed.
type reuser struct {
	hw.SeriesSink
	sge *hw.SGE
}

func (r reuser) CompleteOne(id uint64, op hw.Op, n uint32, flags hw.WCFlags) {
	r.SeriesSink.CompleteOne(id, op, n, flags)
	*r.sge = hw.SGE{}
}

func TestARunDoesNotReadTheSegmentOfARequestThatHasCompleted(t *testing.T) {
	a, b := pair(t, nil)
	runner, p := a.qp.(hw.Runner), a.qp.(*queuePair).out.Load()
	var sge hw.SGE
	p.exec.src.sink = reuser{p.exec.src.sink, &sge}
	for _, taken := range []int{1, 1, 0} { // the budget of a post
		sge = a.sge(0, int(p.budget/2))
		assert.Equal(t, taken, runner.PostRun(hw.OpWrite, hw.WRSignaled|hw.WRMore, 1, &sge, 0, 1, b.mr.RKey(), b.addr(0)))
	}
}

func TestARunBeginsOnNoPipeThatIsHeldOrHasSomethingToLookAt(t *testing.T) {
	a, b := pair(t, nil)
	runner := a.qp.(hw.Runner)
	p := a.qp.(*queuePair).out.Load()
	require.True(t, p.token.TakeOrKick())
	sge := a.sge(0, 8)
	write := func() (taken int) {
		return runner.PostRun(hw.OpWrite, 0, 3, &sge, 0, 2, b.mr.RKey(), b.addr(0))
	}
	assert.Zero(t, write(), "held")
	p.run()
	a.post(send(1, sge)) // it waits for a receive
	assert.Zero(t, write(), "stalled")
	b.recv(2, b.sge(0, 8))
	assert.Equal(t, 2, write())
}

// A Break beside a run is a kick, which the end of the run obeys.
func TestABreakDuringARunIsSeenAtItsEnd(t *testing.T) {
	a, b := pair(t, nil)
	sge := a.sge(0, 8)
	runner := a.qp.(hw.Runner)
	require.Equal(t, 1, runner.PostRun(hw.OpWrite, hw.WRSignaled|hw.WRMore, 1, &sge, 0, 1, b.mr.RKey(), b.addr(0)))
	b.qp.Break(true)
	assert.False(t, b.recvs.ended())
	runner.PostRun(hw.OpWrite, 0, 1, &sge, 0, 0, 0, 0)
	assert.True(t, b.recvs.ended())
	assert.Len(t, a.sends.all(), 1)
}

// posted is a segment within something longer, as its owner keeps it.
type posted struct {
	_   [3]uint64
	sge hw.SGE
	_   uint64
}

const stride = unsafe.Sizeof(posted{})

func TestARunOfSendsEndsAtTheFirstWithoutAReceive(t *testing.T) {
	a, b := pair(t, nil)
	runner := a.qp.(hw.Runner)
	var in, out [5]posted
	for i := range in {
		in[i].sge, out[i].sge = b.sge(64*i, 64), a.sge(8*i, i+1)
		a.mem[8*i] = byte(i + 1)
	}
	require.Equal(t, 3, b.qp.(hw.Runner).RecvRun(20, &in[0].sge, stride, 3))
	b.received.Add(1) // the locked instruction that Kick needs
	b.qp.(hw.Runner).Kick()
	assert.Equal(t, 3, runner.PostRun(hw.OpSend, hw.WRSignaled, 10, &out[0].sge, stride, 5, 0, 0))
	require.Len(t, a.sends.all(), 3)
	require.Len(t, b.recvs.all(), 3)
	for i := range 3 {
		assert.Equal(t, hw.WC{ID: uint64(10 + i), Op: hw.OpSend, Len: uint32(i + 1)}, a.sends.all()[i])
		assert.Equal(t, hw.WC{ID: uint64(20 + i), Op: hw.OpRecv, Len: uint32(i + 1)}, b.recvs.all()[i])
		assert.EqualValues(t, i+1, b.mem[64*i])
	}
}

func TestARunOfSendsEndsWhenAPostersBudgetIsUsedUp(t *testing.T) {
	a, b := pair(t, func(cfg *hw.QPConfig) { cfg.RecvDepth = 2 * maxOps })
	runner, p := a.qp.(hw.Runner), a.qp.(*queuePair).out.Load()
	run := func(n int, length int) int {
		recv, out := b.sge(0, length), a.sge(0, length)
		require.Equal(t, 2*maxOps, b.qp.(hw.Runner).RecvRun(1, &recv, 0, 2*maxOps))
		taken := runner.PostRun(hw.OpSend, hw.WRSignaled|hw.WRMore, 1, &out, 0, n-1, 0, 0)
		assert.Equal(t, n-1, taken)
		assert.Zero(t, runner.PostRun(hw.OpSend, hw.WRSignaled, 1, &out, 0, 1, 0, 0), "the next run takes it")
		for range 2*maxOps - taken { // uses the receives up
			a.post(send(1, out))
		}
		return taken
	}
	assert.Equal(t, maxOps, run(maxOps+1, 8))
	assert.Equal(t, 2, run(3, int(p.budget/2)))
}

func TestARunOfReceivesTakesAsManyAsThereIsRoomFor(t *testing.T) {
	_, b := pair(t, func(cfg *hw.QPConfig) { cfg.RecvDepth = 4 })
	recv := b.sge(0, 8)
	assert.Equal(t, 4, b.qp.(hw.Runner).RecvRun(1, &recv, 0, 5))
	assert.Equal(t, 0, b.qp.(hw.Runner).RecvRun(1, &recv, 0, 1))
}
