package lane

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/bench/mode"
	"godat/hw"
	"godat/hw/sim"
)

// On a device whose completions must be polled, nobody takes events of the senders'
// dispatcher, and a send without an event has a completion of its own only now and then.
func TestSendsWithoutEventsAreRetiredThoughNobodyReadsTheirDispatcher(t *testing.T) {
	const polled = "polled"
	require.NoError(t, hw.Register(sim.New(sim.Config{Name: polled})))
	t.Cleanup(func() { assert.NoError(t, hw.Unregister(polled)) })
	for _, m := range mode.All() {
		t.Run(m.Name, func(t *testing.T) {
			const depth = 4
			l, err := NewEndpoints(Config{Provider: polled, Mode: m, Size: 64, Depth: depth})
			require.NoError(t, err)
			carry(t, l, 3*(2*l.Slots()+64), depth) // three times the room for sends
			require.NoError(t, l.Close())
		})
	}
}
