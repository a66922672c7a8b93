package runtime

import (
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"godat/hw"
	"godat/hw/event"

	"github.com/stretchr/testify/require"
)

// Go's scheduler polls sockets when a processor has nothing to run. A loop of Dequeue
// keeps the only processor busy. If Dequeue did not make the scheduler poll them, the
// runtime's monitor would, 10 ms later.
func TestADequeueLoopOnTheOnlyProcessorGetsMessagesAtOnce(t *testing.T) {
	p := connect(t, open(t, "iwarp"), polledQueue(64))
	p.establish(t)
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(1))
	var buf [4]event.Event
	var perMessage []int
	for range 21 {
		start, polls := time.Now(), 0
		require.NoError(t, p.b.PostRecv(1, hw.Default, p.mem.Segment(8, 8)))
		require.NoError(t, p.a.PostSend(2, hw.Default, p.mem.Segment(0, 8)))
		for events := 0; events < 2; {
			polls++
			n, err := p.events.Dequeue(buf[:])
			require.NoError(t, err)
			for _, ev := range buf[:n] {
				require.NoError(t, ev.Err())
			}
			events += n
			require.Less(t, time.Since(start), 20*time.Second, "%d of two completions", events)
		}
		perMessage = append(perMessage, polls)
	}
	if goruntime.GOOS == "linux" {
		slices.Sort(perMessage)
		require.Less(t, perMessage[len(perMessage)/2], 1000, "polls for each message: %v", perMessage)
	}
}
