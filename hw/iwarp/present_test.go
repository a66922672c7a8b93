package iwarp

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/internal/soft"
)

// What Deregister costs does not grow with the connections of its zone that are idle: it
// looks at those that were at work since the last wait.
func TestDeregisterLooksAtNoIdleConnection(t *testing.T) {
	const pairs = 50
	p := New(Config{})
	na, nb := newNode(t, p, nil), newNode(t, p, nil)
	var peers [pairs][2]*peer
	for i := range peers {
		peers[i] = [2]*peer{na.peer(), nb.peer()}
		join(peers[i][0], peers[i][1])
	}
	source, sink := na.memory(8, hw.LocalRead), nb.memory(8, hw.LocalWrite)
	zone := nb.zone.(*soft.Zone)
	looks := func() uint64 {
		before := zone.Looks()
		require.NoError(t, nb.memory(8, hw.LocalRead).Deregister())
		return zone.Looks() - before
	}
	none := func() bool { return looks() == 0 }
	exchange := func(i, n int) {
		a, b := peers[i][0], peers[i][1]
		b.recv(sink.sge(0, 8))
		a.post(hw.SendWR{Op: hw.OpSend, Flags: hw.WRSignaled, SGL: []hw.SGE{source.sge(0, 8)}})
		assert.Equal(t, hw.StatusSuccess, a.sent(n).Status)
		assert.Equal(t, hw.StatusSuccess, b.received(n).Status)
	}
	require.Eventually(t, none, patience, tick, "what begins the connections is over")
	for i := range peers {
		exchange(i, 0)
	}
	assert.GreaterOrEqual(t, looks(), uint64(pairs), "each placer was at work")
	before := na.zone.(*soft.Zone).Looks()
	require.NoError(t, source.Deregister())
	assert.GreaterOrEqual(t, na.zone.(*soft.Zone).Looks()-before, uint64(pairs), "each sender was at work")
	source = na.memory(8, hw.LocalRead)
	require.Eventually(t, none, patience, tick, "all are idle")
	exchange(17, 1)
	assert.LessOrEqual(t, looks(), uint64(2), "the halves of the one that was at work")
}
