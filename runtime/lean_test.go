//go:build !race

package runtime

import (
	"fmt"
	stdruntime "runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// In a build for the race detector each queue has tags of its owners.
func TestAnIdleConnectionIsLean(t *testing.T) {
	const conns, ends = 64, 2
	for _, test := range []struct {
		provider string
		apart    bool
		most     uint64
	}{{"loop", false, 16 << 10}, {"loop", true, 23 << 10}, {"iwarp", false, 20 << 10}, {"iwarp", true, 26 << 10}} {
		t.Run(fmt.Sprintf("%s, Apart=%v", test.provider, test.apart), func(t *testing.T) {
			ia := open(t, test.provider)
			l, err := ia.Listen(within(t), localhost(ia), ConnConfig{Conns: ends * (conns + 1), Apart: test.apart})
			require.NoError(t, err)
			joined(t, l) // what the first connection makes serves all
			before := heap()
			for range conns {
				joined(t, l)
			}
			each := (heap() - before) / (conns * ends)
			t.Logf("%d bytes of heap for each end", each)
			assert.LessOrEqual(t, each, test.most)
		})
	}
}

// joined makes a connection of a listener to itself.
func joined(t testing.TB, l *Listener) {
	client, err := l.Dial(l.Addr(), nil)
	require.NoError(t, err)
	for _, c := range []*Conn{accept(t, l), client} {
		require.Equal(t, Established, nextEvent(t, c.Events()).Number)
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
