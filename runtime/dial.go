package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"

	"godat/ep"
	"godat/evd"
	"godat/hw"
)

// Dial connects to address, "host:port", and returns when the connection is up. The
// receives are posted before. The connection has a channel of events of its own. If
// ctx ends first, the error is its cause; if the peer refuses, it is that of the
// event that says so: see [evd.Event.Err]. It is INVALID_HANDLE/IA on an adapter that is
// closed, also if that is while Dial waits, and INVALID_HANDLE/EP when the connection,
// which Setup may have shown to others, is closed meanwhile.
func (ia *IA) Dial(ctx context.Context, address string, cfg ConnConfig) (*Conn, error) {
	const op = "runtime.Dial"
	if ia == nil {
		return nil, closedIA(op)
	}
	if err := cfg.complete(op, ia.attr); err != nil {
		return nil, err
	}
	c := ia.newConn(&cfg, nil, address, nil)
	err := c.begin(op, func() error {
		err := c.Endpoint.CommonConnect(address, ep.ConnectConfig{Private: cfg.Private})
		if err == nil {
			err = c.established(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", op, address, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// orClosed is the error of a call that makes several things: if the adapter was closed
// meanwhile that is why one of them failed, whatever its own error says.
func (ia *IA) orClosed(op string, err error) error {
	select {
	case <-ia.down:
		if errors.Is(err, hw.ErrInvalidHandle) {
			return closedIA(op)
		}
	default:
	}
	return err
}

// established waits until the connection is up.
func (c *Conn) established(ctx context.Context) error {
	for {
		select {
		case ev, ok := <-c.events.C():
			switch {
			case !ok:
				return closedConn("runtime.Dial")
			case ev.Number == evd.Established:
				return nil
			case ev.Ended():
				return ev.Err()
			}
			// An operation that Setup posted was flushed.
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Receive waits for the peer's next message, which the program owns from then on. It
// is for a connection with a channel of its own, in a program that waits for nothing
// else: other events are dropped. When the connection ends in order the error is
// io.EOF, also when this end closed it, else that of the event; when ctx ends, its
// cause.
func (c *Conn) Receive(ctx context.Context) (*Buffer, error) {
	for {
		select {
		case ev, ok := <-c.events.C():
			if b := c.Message(ev); b != nil {
				return b, nil
			}
			if err := ev.Err(); err != nil {
				return nil, err
			}
			if !ok || ev.Ended() {
				return nil, io.EOF
			}
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
