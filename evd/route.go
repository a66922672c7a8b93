package evd

import (
	"godat/hw"
	"godat/internal/delivery"
)

// Route sends the events of some cookies to a channel of its own.
type Route struct{ inner delivery.Route }

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
	r := new(Route)
	if !d.inner.AddRoute(&r.inner, mask, value, qlen) {
		return nil, invalidHandle(op)
	}
	return r, nil
}

// C is the route's channel. It is closed when the route was closed and its last
// event is in it.
func (r *Route) C() <-chan Event {
	if r == nil {
		return nil
	}
	return r.inner.C()
}

// Close refuses further posts whose cookies match, until the last event that is
// outstanding has come; then it closes the channel, and the cookies are other
// routes' or the dispatcher's again. Closing twice does nothing.
func (r *Route) Close() error {
	if r == nil {
		return invalidHandle("evd.Route.Close")
	}
	r.inner.Close()
	return nil
}

// String names the route.
func (r *Route) String() string {
	if r == nil {
		return "Route(nil)"
	}
	return r.inner.String()
}
