package ep

import (
	"sync"
	"sync/atomic"
	"time"

	"godat/ep/internal/line"
	"godat/hw"
	"godat/internal/delivery"
)

// How long requests take, from the post to the completion, is measured while somebody asks for
// it. The data path pays nothing otherwise: the rules of an endpoint that measures let no request
// go the short way, which writes no time, and a bit of its queue has completions look at it.

// latency says whether the endpoints of an adapter measure.
type latency struct {
	since atomic.Int64 // when they began, by line.Clock; 0: they do not
	mu    sync.Mutex   // held while since changes, and until all endpoints know
	users int
}

// times reports whether the operations of a queue are to be measured now. A receive waits for
// the peer, so its time says nothing.
func (l *latency) times(plain hw.Op) bool { return plain == hw.OpSend && l.since.Load() != 0 }

// took notes how long a request took that was posted at that time, if it was posted while this
// was measured. The completer calls it.
func (l *latency) took(posted int64, to *delivery.Queue) {
	now, since := line.Clock(), l.since.Load()
	if since != 0 && posted != 0 && posted-since >= 0 {
		to.Took(time.Duration(now - posted))
	}
}
