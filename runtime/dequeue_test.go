package runtime

import (
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Go polls sockets when a processor has nothing to run, and a loop of Dequeue always
// keeps the processor busy. The runtime's monitor still polls sockets, so messages come
// late but are not lost.
func TestADequeueLoopOnTheOnlyProcessorGetsMessages(t *testing.T) {
	p := connect(t, open(t, "iwarp"), polledQueue(64))
	p.establish(t)
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(1))
	var buf [4]Event
	deadline := time.Now().Add(20 * time.Second)
	for range 5 {
		require.NoError(t, p.b.PostRecv(1, Default, p.mem.Segment(8, 8)))
		require.NoError(t, p.a.PostSend(2, Default, p.mem.Segment(0, 8)))
		for events := 0; events < 2; {
			n, err := p.events.Dequeue(buf[:])
			require.NoError(t, err)
			for _, ev := range buf[:n] {
				require.NoError(t, ev.Err())
			}
			events += n
			require.True(t, time.Now().Before(deadline), "%d of two completions", events)
		}
	}
}
