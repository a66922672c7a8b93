package target

import (
	"context"
	"errors"
	"fmt"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	dat "godat/runtime"
)

// listener is an address on which a target listens, and what its adapter can do.
type listener struct {
	*dat.Listener
	invalidates bool // the provider has send with invalidate
	fences      bool // a post executes requests at once: see queue.write
	everywhere  bool // it listens on all addresses of the machine
}

// Listen listens on a further address, of the adapter of New or of another one, and returns the
// address, host:port. It is called before Run. The discovery log has all addresses.
func (t *Target) Listen(ctx context.Context, ia *dat.IA, addr string) (string, error) {
	ln, err := ia.Listen(ctx, addr, t.conns)
	if err != nil {
		return "", fmt.Errorf("target: listen on %s: %w", addr, err)
	}
	attr := ia.Attr()
	t.listeners = append(t.listeners, &listener{
		Listener: ln, invalidates: attr.Ops.Has(hw.OpSendInvalidate), fences: attr.Provider == "loop", everywhere: listensEverywhere(ia.Name(), addr),
	})
	return ln.Addr(), nil
}

// accept answers the connection requests of a listener until ctx is done or the listener is
// closed.
func (t *Target) accept(ctx context.Context, l *listener, ended chan<- struct{}) {
	defer func() { ended <- struct{}{} }()
	for {
		select {
		case ev := <-l.Requests():
			if ev.Number == event.Closed {
				return
			}
			t.answer(ctx, l, ep.RequestOf(ev))
		case <-ctx.Done():
			return
		}
	}
}

func closeAll(listeners []*listener) error {
	var errs []error
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}
