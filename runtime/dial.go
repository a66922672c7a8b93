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
// event that says so (see [evd.Event.Err]), and what the peer's program said is
// [hw.Cause].Private of it. It is INVALID_HANDLE/IA on an adapter that is
// closed, also if that is while Dial waits, and INVALID_HANDLE/EP when the connection,
// which Setup may have shown to others, is closed meanwhile; INVALID_HANDLE/PZ with a
// zone that is closed or another adapter's, and INVALID_PARAMETER with a nil ctx.
func (ia *IA) Dial(ctx context.Context, address string, cfg ConnConfig) (*Conn, error) {
	const op = "runtime.Dial"
	if err := ia.mayDial(ctx, op, &cfg); err != nil {
		return nil, err
	}
	c := ia.newConn(&cfg, nil, address, nil)
	err := c.begin(op, cfg.Private, func(private []byte) error {
		err := c.Endpoint.CommonConnect(address, ep.ConnectConfig{Private: private})
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

// mayDial refuses what can't be right, before anything is made, and completes cfg.
func (ia *IA) mayDial(ctx context.Context, op string, cfg *ConnConfig) error {
	if err := ia.enter(op); err != nil {
		return err
	}
	ia.gate.RUnlock()
	if ctx == nil {
		return nilContext(op)
	}
	if cfg.PZ != nil {
		if !ia.domain.Has(cfg.PZ) {
			return hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "the zone is another adapter's")
		}
		if _, err := cfg.PZ.Query(0); err != nil {
			return err
		}
	}
	return cfg.complete(op, ia.attr)
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
// cause. A nil ctx is INVALID_PARAMETER, a nil connection INVALID_HANDLE/EP.
func (c *Conn) Receive(ctx context.Context) (*Buffer, error) {
	const op = "runtime.Conn.Receive"
	if c == nil {
		return nil, closedConn(op)
	}
	if ctx == nil {
		return nil, nilContext(op)
	}
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

// Do posts a request and waits until it has completed: RDMA for a goroutine that has
// nothing else to do meanwhile. No event of it comes to Events, so Suppress means
// nothing. The error is that of the post or of the completion; when ctx ends first it
// is the context's, and the request goes on: its memory is the operation's until the
// connection is closed. A nil ctx is INVALID_PARAMETER, a nil or closed connection
// INVALID_HANDLE/EP.
func (c *Conn) Do(ctx context.Context, request DTO) error {
	const op = "runtime.Conn.Do"
	if c == nil || c.closed.Load() {
		return closedConn(op)
	}
	if ctx == nil {
		return nilContext(op)
	}
	request.Flags &^= hw.Suppress
	request.OneShot = c.events.NewOneShot()
	defer request.OneShot.Release()
	if _, err := c.Endpoint.PostBatch([]ep.DTO{request}); err != nil {
		return err
	}
	ev, err := request.OneShot.Wait(ctx)
	if err != nil {
		return err
	}
	return ev.Err()
}
