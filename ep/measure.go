package ep

import (
	"sync"

	"godat/ep/internal/line"
	"godat/internal/door"
)

// MeasureLatency measures the requests of all endpoints until stop is called, and until those
// of others who measure are. The interface adapter calls it.
func (a *Adapter) MeasureLatency(door.Key) (stop func()) {
	a.measure(1)
	return sync.OnceFunc(func() { a.measure(-1) })
}

// MeasuresLatency reports whether somebody measures. The interface adapter calls it.
func (a *Adapter) MeasuresLatency(door.Key) bool { return a.latency.since.Load() != 0 }

// measure counts a user of the latencies who begins, or ends.
func (a *Adapter) measure(n int) {
	l := &a.latency
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
		fitting{e}.measure()
	}
}
