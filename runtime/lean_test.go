//go:build !race

package runtime

import (
	"fmt"
	stdruntime "runtime"
	"testing"
	"time"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An end that has received nothing and sent nothing. In a build for the race detector each
// queue has tags of its owners.
//
// What is left is one object each: 64 buffers 2.5 KB; the slots of 23 receives 2.3; the
// endpoint 1.3; the provider's two queues and connection 3 on loop and 4.4 on iwarp. A channel
// of its own adds 7, of which 80 events of 56 bytes are 4.9. The first request adds its 32 slots, 2.3 KB, and
// on iwarp 6.
func TestAnIdleConnectionIsLean(t *testing.T) {
	const conns, ends = 256, 2
	for _, test := range []struct {
		provider string
		apart    bool
		most     uint64
	}{{"loop", false, 12 << 10}, {"loop", true, 19 << 10}, {"iwarp", false, 16 << 10}, {"iwarp", true, 23 << 10}} {
		t.Run(fmt.Sprintf("%s, Apart=%v", test.provider, test.apart), func(t *testing.T) {
			ia := open(t, test.provider)
			l, err := ia.Listen(within(t), localhost(ia), ConnConfig{Conns: 3 * ends * conns, Apart: test.apart})
			require.NoError(t, err)
			for range 2 * conns { // what the first connections make serves all, and tables have their size
				joined(t, l)
			}
			before := settled(t)
			for range conns {
				joined(t, l)
			}
			each := (settled(t) - before) / (conns * ends)
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
		require.Equal(t, event.Established, nextEvent(t, c.Events()).Number)
	}
}

// settled is heap when what ends beside, such as an earlier test's adapter, has ended.
func settled(t testing.TB) uint64 {
	last := heap()
	require.Eventually(t, func() bool {
		now := heap()
		same := max(now, last)-min(now, last) < 1<<10
		last = now
		return same
	}, time.Minute, time.Millisecond)
	return last
}

// heap is how many bytes are reachable.
func heap() uint64 {
	var m stdruntime.MemStats
	stdruntime.GC()
	stdruntime.GC() // of what the first has finalized
	stdruntime.ReadMemStats(&m)
	return m.HeapAlloc
}
