package loop

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// A Deregister waits for the hold of a pipe, so a run may not be longer than the post of
// an array.
func TestARunEndsWhenAPostersBudgetIsUsedUp(t *testing.T) {
	a, b := pair(t, nil)
	direct := a.qp.(hw.Direct)
	run := func(n int) (taken int) {
		sge := a.sge(0, n)
		require.True(t, direct.BeginRun())
		defer direct.EndRun()
		for direct.RunOne(hw.OpWrite, 0, 0, &sge, b.mr.RKey(), b.addr(0)) {
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
	hw.DirectSink
	sge *hw.SGE
}

func (r reuser) CompleteOne(id uint64, op hw.Op, n uint32, flags hw.WCFlags) {
	r.DirectSink.CompleteOne(id, op, n, flags)
	*r.sge = hw.SGE{}
}

func TestARunDoesNotReadTheSegmentOfARequestThatHasCompleted(t *testing.T) {
	a, b := pair(t, nil)
	direct, p := a.qp.(hw.Direct), a.qp.(*queuePair).out.Load()
	var sge hw.SGE
	p.exec.src.sink = reuser{p.exec.src.sink, &sge}
	require.True(t, direct.BeginRun())
	defer direct.EndRun()
	for _, within := range []bool{true, true, false} { // the budget of a post
		sge = a.sge(0, int(p.budget/2))
		assert.Equal(t, within, direct.RunOne(hw.OpWrite, hw.WRSignaled, 1, &sge, b.mr.RKey(), b.addr(0)))
	}
}

func TestARunBeginsOnNoPipeThatIsHeldOrHasSomethingToLookAt(t *testing.T) {
	a, b := pair(t, nil)
	direct := a.qp.(hw.Direct)
	p := a.qp.(*queuePair).out.Load()
	require.True(t, p.token.TakeOrKick())
	assert.False(t, direct.BeginRun(), "held")
	p.run()
	a.post(send(1, a.sge(0, 8))) // it waits for a receive
	assert.False(t, direct.BeginRun(), "stalled")
	b.recv(2, b.sge(0, 8))
	assert.True(t, direct.BeginRun())
	direct.EndRun()
}

// A Break beside a run is a kick, which the end of the run obeys.
func TestABreakDuringARunIsSeenAtItsEnd(t *testing.T) {
	a, b := pair(t, nil)
	sge := a.sge(0, 8)
	direct := a.qp.(hw.Direct)
	require.True(t, direct.BeginRun())
	require.True(t, direct.RunOne(hw.OpWrite, hw.WRSignaled, 1, &sge, b.mr.RKey(), b.addr(0)))
	b.qp.Break(true)
	assert.False(t, b.recvs.ended())
	direct.EndRun()
	assert.True(t, b.recvs.ended())
	assert.Len(t, a.sends.all(), 1)
}
