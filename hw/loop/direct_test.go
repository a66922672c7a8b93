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

func TestARunBeginsOnNoPipeThatIsHeldOrHasSomethingToLookAt(t *testing.T) {
	a, b := pair(t, nil)
	direct := a.qp.(hw.Direct)
	p := a.qp.(*queuePair).out.Load()
	require.True(t, p.takeOrKick())
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
