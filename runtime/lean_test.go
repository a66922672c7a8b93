//go:build !race

package runtime

import (
	stdruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// In a build for the race detector each queue has tags of its owners.
func TestAnIdleConnectionIsLean(t *testing.T) {
	const conns, ends = 64, 2
	for name, most := range map[string]uint64{"loop": 16 << 10, "iwarp": 20 << 10} {
		t.Run(name, func(t *testing.T) {
			ia := open(t, name)
			l, err := ia.Listen(within(t), localhost(ia), ConnConfig{Conns: ends * (conns + 1)})
			require.NoError(t, err)
			joined(t, l) // what the first connection makes serves all
			before := heap()
			for range conns {
				joined(t, l)
			}
			each := (heap() - before) / (conns * ends)
			t.Logf("%d bytes of heap for each end", each)
			assert.LessOrEqual(t, each, most)
		})
	}
}

// joined makes a connection of a listener to itself.
func joined(t testing.TB, l *Listener) {
	_, err := l.Dial(l.Addr(), nil)
	require.NoError(t, err)
	accept(t, l)
	for range 2 {
		require.Equal(t, Established, nextEvent(t, l.Events()).Number)
	}
}

// heap is how many bytes are reachable.
func heap() uint64 {
	var m stdruntime.MemStats
	stdruntime.GC()
	stdruntime.GC() // of what the first has finalized
	stdruntime.ReadMemStats(&m)
	return m.HeapAlloc
}
