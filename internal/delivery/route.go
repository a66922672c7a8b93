package delivery

import (
	"godat/hw/event"
)

// Route is what is behind an evd.Route: a channel for the events of some cookies.
type Route struct {
	mask, value uint64
	queue       Queue
}

// AddRoute makes r the route of the operations whose cookie, masked, is value, for qlen
// operations at a time. It reports false on a closed dispatcher.
func (d *Dispatcher) AddRoute(r *Route, mask, value uint64, qlen int) bool {
	r.mask, r.value = mask, value
	r.queue.route = r
	r.queue.initChannel(d, qlen, qlen)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.main.closed() {
		return false
	}
	var rs []*Route
	if old := d.routes.Load(); old != nil {
		rs = append(rs, *old...)
	}
	rs = append(rs, r)
	d.routes.Store(&rs)
	return true
}

// C is the route's channel.
func (r *Route) C() <-chan event.Event { return r.queue.ch }

// Close refuses further posts whose cookies match. When the last event that is
// outstanding has come, the channel is closed and the route forgotten.
func (r *Route) Close() { r.queue.shut() }

// drop forgets a route whose channel was closed.
func (d *Dispatcher) drop(r *Route) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var rs []*Route
	for _, other := range *d.routes.Load() {
		if other != r {
			rs = append(rs, other)
		}
	}
	if len(rs) == 0 && d.front == nil {
		d.routes.Store(nil)
	} else {
		d.routes.Store(&rs)
	}
}

// For returns the queue for the events of a cookie: a route's, or the main one. It
// takes no lock; its cost grows with the number of routes.
func (d *Dispatcher) For(cookie uint64) *Queue {
	rs := d.routes.Load()
	if rs == nil {
		return &d.main
	}
	return d.routed(*rs, cookie)
}

func (d *Dispatcher) routed(rs []*Route, cookie uint64) *Queue {
	for _, r := range rs {
		if cookie&r.mask == r.value {
			return &r.queue
		}
	}
	return d.Main()
}
