package runtime

import (
	"context"
	"io"

	"godat/ep"
	"godat/hw"
)

// SendBytes sends a copy of p as one message, in a buffer that it takes from the pool:
// it is Buffer, Write and Send in one call. It does not wait. More than
// ConnConfig.Message bytes are LENGTH_ERROR; INSUFFICIENT_RESOURCES means that the
// program has Depth buffers that it took and has not released, or whose messages are
// still being sent. Other errors are those of Send.
func (c *Conn) SendBytes(p []byte) error {
	const op = "runtime.Conn.SendBytes"
	if c == nil || c.closed.Load() {
		return closedConn(op)
	}
	if len(p) > c.cfg.Message {
		return hw.Errorf(op, hw.LengthError, hw.NoSubtype, "a message of %d bytes; ConnConfig.Message is %d", len(p), c.cfg.Message)
	}
	b := c.Buffer()
	if b == nil {
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceMemory, "all %d buffers for messages are in use", c.cfg.Depth)
	}
	_, _ = b.Write(p) // which fits
	return c.Send(b)
}

// Receive waits for the peer's next message; the program owns its buffer from then on.
// It is for a connection with a channel of its own, in a program that waits for nothing
// else: it drops other events, and returns the error of one that has an error. When the
// peer has ended the connection in order, the error is io.EOF; when the connection broke,
// it is that of its end (see [event.Event.Err]). When this end has closed the connection,
// the error is INVALID_HANDLE/EP, as for a nil connection, and matches [net.ErrClosed];
// a call that waits while Shutdown runs may return io.EOF. When ctx ends, the error is its
// cause. A nil ctx is INVALID_PARAMETER, a connection with ConnConfig.Batches
// INVALID_STATE.
func (c *Conn) Receive(ctx context.Context) (*Buffer, error) {
	const op = "runtime.Conn.Receive"
	if c == nil {
		return nil, closedConn(op)
	}
	if ctx == nil {
		return nil, nilContext(op)
	}
	if c.cfg.Batches {
		return nil, hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "the messages come in Batches")
	}
	for {
		select {
		case ev := <-c.events.C():
			if b := c.Message(ev); b != nil {
				return b, nil
			}
			if ev.Ended() {
				c.leave()
			}
			if c.isGone() {
				return nil, closedConn(op)
			}
			if err := ev.Err(); err != nil {
				return nil, err
			}
			if ev.Ended() {
				return nil, io.EOF
			}
		case <-c.gone:
			return nil, closedConn(op)
		case <-c.ia.down:
			return nil, closedConn(op)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// isGone reports whether the connection or its adapter is closed.
func (c *Conn) isGone() bool { return c.closed.Load() || isDone(c.ia.down) }

// isDone reports whether a channel is closed on which nothing is sent.
func isDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Do posts a request and waits for its completion. It is for RDMA by a goroutine that
// has nothing else to do meanwhile. The event does not come to Events, and Do ignores
// Suppress. The error is that of the post or of the completion. When ctx ends first,
// the error is the context's, and the request goes on: the operation may use its memory
// until the connection is closed. A nil ctx is INVALID_PARAMETER, a nil or closed
// connection INVALID_HANDLE/EP.
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
