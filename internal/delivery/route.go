package delivery

import (
	"fmt"
	"sync"
	"sync/atomic"

	"godat/hw/event"
)

// Route is what is behind an evd.Route: a channel for the events of some cookies.
type Route struct {
	queue       Queue // first, as in Dispatcher
	mask, value uint64
}

// routes are the routes of a dispatcher.
type routes struct {
	// list is nil without routes, so that For looks at one word. It is empty if
	// there are none, but keepEmpty.
	list      atomic.Pointer[[]*Route]
	keepEmpty bool // immutable; see overcommit

	mu sync.Mutex // held by writers of list
}

// AddRoute makes r the route of the operations whose cookie, masked, is value, for qlen
// operations at a time. It reports false on a closed dispatcher.
func (d *Dispatcher) AddRoute(r *Route, mask, value uint64, qlen int) bool {
	r.mask, r.value = mask, value
	r.queue.d = d
	r.queue.initChannel(qlen, qlen)
	r.queue.channel.name, r.queue.channel.ended = r, func() { d.routes.drop(r) }
	return d.routes.add(r, &d.main)
}

// add adds r unless the dispatcher, whose main queue is given, is closed.
func (t *routes) add(r *Route, main *Queue) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if main.closed() {
		return false
	}
	rs := append(t.copy(nil), r)
	t.list.Store(&rs)
	return true
}

// drop forgets a route whose channel was closed.
func (t *routes) drop(r *Route) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rs := t.copy(r)
	if len(rs) == 0 && !t.keepEmpty {
		t.list.Store(nil)
	} else {
		t.list.Store(&rs)
	}
}

// copy returns a copy of the list without one route.
func (t *routes) copy(without *Route) (rs []*Route) {
	for _, r := range t.all() {
		if r != without {
			rs = append(rs, r)
		}
	}
	return rs
}

// all returns the routes, which must not be changed.
func (t *routes) all() []*Route {
	if rs := t.list.Load(); rs != nil {
		return *rs
	}
	return nil
}

// shut shuts the queues of all routes. The dispatcher is closed, so the callers of add
// that come later than shut add none.
func (t *routes) shut() {
	t.mu.Lock()
	rs := t.all()
	t.mu.Unlock()
	for _, r := range rs {
		r.queue.shut()
	}
}

// C is the route's channel.
func (r *Route) C() <-chan event.Event { return r.queue.channel.ch }

// Close refuses further posts whose cookies match. When the last event that is
// outstanding has come, the channel is closed and the route forgotten.
func (r *Route) Close() { r.queue.shut() }

// String names the route.
func (r *Route) String() string { return fmt.Sprintf("Route(%#x/%#x)", r.value, r.mask) }

// For returns the queue for the events of a cookie: a route's, or the main one. It
// takes no lock; its cost grows with the number of routes.
func (d *Dispatcher) For(cookie uint64) *Queue {
	rs := d.routes.list.Load()
	if rs == nil {
		return &d.main
	}
	return d.routed(*rs, cookie)
}

// ForAll returns the queue for the events of all cookies, or nil if there are routes.
func (d *Dispatcher) ForAll() *Queue {
	if d.routes.list.Load() == nil {
		return &d.main
	}
	return nil
}

func (d *Dispatcher) routed(rs []*Route, cookie uint64) *Queue {
	for _, r := range rs {
		if cookie&r.mask == r.value {
			return &r.queue
		}
	}
	return d.Main()
}
