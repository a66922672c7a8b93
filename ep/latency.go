package ep

import (
	"sync"
	"sync/atomic"
	"time"

	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/door"
)

// How long requests take, from the post to the completion, is measured while somebody asks for
// it. The data path pays nothing otherwise: the rules of an endpoint that measures let no request
// go the short way, which writes no time, and a bit in queue.watched has completions look at it.

// latency says whether the endpoints of an adapter measure.
type latency struct {
	since atomic.Int64 // when they began, by clock; 0: they do not
	mu    sync.Mutex   // held while since changes, and until all endpoints know
	users int
}

// began is when the process began, or little later.
var began = time.Now()

// clock is the time, in nanoseconds. It is not 0.
func clock() int64 { return int64(time.Since(began)) | 1 }

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
		l.since.Store(clock())
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
	e.record.mu.Lock()
	defer e.record.mu.Unlock()
	q := &e.box.requests
	if r := *q.rules.Load(); r.timed != l.times(q.plain) {
		e.store(q, &r, r.maxMessage)
	}
}

// store makes r the rules of q, given the most bytes of a message. The caller holds record.mu,
// and has nothing else of r to change.
func (e *Endpoint) store(q *queue, r *rules, longest uint64) {
	if r.timed = e.adapter.latency.times(q.plain); r.timed {
		q.watched.Or(timed)
	} else {
		q.watched.And(^timed)
	}
	r.bound(longest)
	q.rules.Store(e.adapter.sharedRules(q.plain, r))
}

// times reports whether the operations of a queue are to be measured now. A receive waits for
// the peer, so its time says nothing.
func (l *latency) times(plain hw.Op) bool { return plain == hw.OpSend && l.since.Load() != 0 }

// took notes how long a request took that was posted at that time, if it was posted while this
// was measured. The completer calls it.
func (l *latency) took(posted int64, to *delivery.Queue) {
	now, since := clock(), l.since.Load()
	if since != 0 && posted != 0 && posted-since >= 0 {
		to.Took(time.Duration(now - posted))
	}
}
