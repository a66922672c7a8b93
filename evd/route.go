package evd

import "godat/hw"

// Route sends the events of some cookies to a channel of its own.
type Route struct {
	mask, value uint64
	queue       Queue
}

// Route makes a channel for the events of the operations whose cookie, masked,
// is value. Which channel an operation's event goes to is fixed when it is
// posted. Where routes overlap the older one decides. At least qlen operations may
// be outstanding on the route; as any channel it holds 80 more.
//
// The dispatcher's mode doesn't matter. Closing the dispatcher closes its
// routes.
func (d *Dispatcher) Route(mask, value uint64, qlen int) (*Route, error) {
	const op = "evd.Route"
	switch {
	case d == nil:
		return nil, invalidHandle(op)
	case value&^mask != 0:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "value %#x has bits outside the mask %#x", value, mask)
	case qlen < 1:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg3, "queue length %d", qlen)
	case qlen > MaxQLen:
		return nil, &hw.Error{Op: op, Type: hw.InsufficientResources, Sub: hw.ResourceTEVD}
	}
	r := &Route{mask: mask, value: value}
	r.queue.route = r
	r.queue.initChannel(d, qlen, qlen)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.main.closed() {
		return nil, invalidHandle(op)
	}
	var rs []*Route
	if old := d.routes.Load(); old != nil {
		rs = append(rs, *old...)
	}
	rs = append(rs, r)
	d.routes.Store(&rs)
	return r, nil
}

// C is the route's channel. It is closed when the route was closed and its last
// event is in it.
func (r *Route) C() <-chan Event {
	if r == nil {
		return nil
	}
	return r.queue.ch
}

// Close refuses further posts whose cookies match, until the last event that is
// outstanding has come; then it closes the channel, and the cookies are other
// routes' or the dispatcher's again. Closing twice does nothing.
func (r *Route) Close() error {
	if r == nil {
		return invalidHandle("evd.Route.Close")
	}
	r.queue.shut()
	return nil
}

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

// For is the queue for the events of a cookie: a route's, or the main one. It
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
