package ep

import (
	"sync"
	"sync/atomic"
	"time"

	"godat/ep/internal/line"
	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/door"
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

// MeasureLatency measures the requests of all endpoints until stop is called, and until those
// of others who measure are. The interface adapter calls it.
func (a *Adapter) MeasureLatency(door.Key) (stop func()) {
	a.latency.use(a, 1)
	return sync.OnceFunc(func() { a.latency.use(a, -1) })
}

// MeasuresLatency reports whether somebody measures. The interface adapter calls it.
func (a *Adapter) MeasuresLatency(door.Key) bool { return a.latency.since.Load() != 0 }

// use counts a user who begins, or ends.
func (l *latency) use(a *Adapter, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.users
	switch l.users += n; {
	case before == 0:
		l.since.Store(line.Clock())
	case l.users == 0:
		l.since.Store(0)
	default:
		return
	}
	for _, e := range a.eps.list() {
		l.tell(e)
	}
}

// tell has the requests of an endpoint measured, or not any more.
func (l *latency) tell(e *Endpoint) {
	e.record.Mu.Lock()
	defer e.record.Mu.Unlock()
	q := &e.box.Requests
	if r, now := q.Rules(), l.times(q.Op()); r.Measures() != now {
		q.SetRules(*r, now)
	}
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
