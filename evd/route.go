package evd

import (
	"log/slog"

	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
)

// Route sends the events of some cookies to a channel of its own.
//
// [Dispatcher.Route] makes one. By it a worker gets the completions of its requests and no others.
type Route struct{ inner delivery.Route }

// Route makes a channel for the events of the operations whose cookie, masked with
// mask, is value. The post of an operation decides which channel its event goes to.
// Where routes overlap, the oldest gets the event. At least qlen operations may be
// outstanding on the route; like any channel it holds 80 events more. A value with
// bits outside mask, and a qlen below 1, are INVALID_PARAMETER.
//
// A dispatcher of any mode may have routes. Closing the dispatcher closes them.
func (d *Dispatcher) Route(mask, value uint64, qlen int) (*Route, error) {
	const op = "evd.Route"
	switch {
	case !d.isMade():
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

// C is the route's channel. After Close, the dispatcher closes it once it has sent
// the last event.
func (r *Route) C() <-chan event.Event {
	if r == nil {
		return nil
	}
	return r.inner.C()
}

// Close refuses further posts whose cookies match. When the last outstanding event
// has come, the channel is closed, and events of these cookies go to other routes
// or to the dispatcher again. Closing twice does nothing.
func (r *Route) Close() error {
	if r == nil || r.inner.C() == nil {
		return &hw.Error{Op: "evd.Route.Close", Type: hw.InvalidHandle, Sub: hw.Handle1, Text: "the route is nil or zero; Dispatcher.Route makes one"}
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

// LogValue is String, for log/slog.
func (r *Route) LogValue() slog.Value { return slog.StringValue(r.String()) }
