package runtime

import (
	"cmp"
	"context"
	"io"
	"sync"

	"godat/ep"
	"godat/hw"
	"godat/mem"
)

// SendBytes sends a copy of p as one message, in a buffer that it takes from the pool:
// it is Buffer, Write and Send in one call. It does not wait. More than
// ConnConfig.Message bytes are LENGTH_ERROR; INSUFFICIENT_RESOURCES means that the
// program has Depth buffers that it took and has not released, or whose messages are
// still being sent. The peer's answer may come before this end knows that the message was sent,
// most of all over TLS: a program that has Depth messages under way, and sends the next one at an
// answer, takes its buffer by [Conn.WaitBuffer]. A connection with ConnConfig.OwnReceives has no buffers: there it is
// INVALID_STATE. Other errors are those of Send.
func (c *Conn) SendBytes(p []byte) error {
	const op = "runtime.Conn.SendBytes"
	if c == nil || c.closed.Load() {
		return closedConn(op)
	}
	if c.pool == nil {
		return noBuffers(op)
	}
	if len(p) > c.cfg.Message {
		return hw.Errorf(op, hw.LengthError, hw.NoSubtype, "a message of %d bytes; ConnConfig.Message is %d", len(p), c.cfg.Message)
	}
	b := c.Buffer()
	if b == nil {
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceMemory, "all %d buffers for messages are in use, by the program or by sends that have not completed, which may be those of messages that the peer has answered; WaitBuffer waits for one, and Release gives one back", c.cfg.Depth)
	}
	_, _ = b.Write(p) // which fits
	return c.Send(b)
}

// connEnd tells calls of Receive of the connection's end, whose event one of them takes.
type connEnd struct {
	once  sync.Once
	taken chan struct{} // closed when the event has been taken
	err   error         // what Receive returns from then on; set before
}

// take records the end. It does nothing again, for the end of an endpoint that the program has
// connected anew.
func (e *connEnd) take(err error) {
	e.once.Do(func() {
		e.err = err
		close(e.taken)
	})
}

// endOf is where the calls of Receive learn of the end. The first call makes it.
func endOf(c *Conn) *connEnd {
	if c.last.Load() == nil {
		c.last.CompareAndSwap(nil, &connEnd{taken: make(chan struct{})})
	}
	return c.last.Load()
}

// Receive waits for the peer's next message; the program owns its buffer from then on.
// It is for a connection with a channel of its own, in a program that waits for nothing
// else: it drops other events, and returns the error of one that has an error. When the
// peer has ended the connection in order, the error is io.EOF; when the connection broke,
// it is that of its end (see [event.Event.Err]). Every call that waits then, and every later
// one, returns the same. The peer's Close is an end in order, too, but drops messages that the peer has not
// sent yet: io.EOF comes behind all messages only if the peer calls Shutdown. When this end has closed the connection,
// the error is INVALID_HANDLE/EP, as for a nil connection, and matches [net.ErrClosed];
// a call that waits while Shutdown runs may return io.EOF. When ctx ends, the error is its
// cause. A nil ctx is INVALID_PARAMETER, a connection with ConnConfig.Batches
// INVALID_STATE.
func (c *Conn) Receive(ctx context.Context) (*mem.Buffer, error) {
	const op = "runtime.Conn.Receive"
	if !c.isMade() {
		return nil, closedConn(op)
	}
	if ctx == nil {
		return nil, nilContext(op)
	}
	if c.cfg.Batches {
		return nil, hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "the messages come by the channel Batches: range over that, or leave ConnConfig.Batches out")
	}
	end := endOf(c)
	for {
		var err error
		select {
		case ev := <-c.events.C():
			if b := c.Message(ev); b != nil {
				return b, nil
			}
			err = ev.Err()
			if ev.Ended() {
				c.listener.leave(c)
				err = cmp.Or(err, io.EOF)
				if ep.Of(ev) == c.Endpoint { // neither Closed, nor of another connection on a shared channel
					end.take(err)
				}
			}
		case <-end.taken:
			err = end.err
		case <-c.gone:
		case <-c.ia.gate.down:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if c.closed.Load() || isDone(c.ia.gate.down) {
			return nil, closedConn(op)
		}
		if err != nil {
			return nil, err
		}
	}
}

// isDone reports whether a channel is closed, or takes the value that is in it.
func isDone(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Do posts requests, in order, as one batch, and waits until all have completed. It is for
// RDMA by a goroutine that has nothing else to do meanwhile. No event of theirs comes to
// Events, and Do ignores Suppress and OneShot. The error is that of the post, or of the first
// request that failed; those behind it have not been executed or may have been.
// A connection has at most ep.Attr.MaxRequestDTOs requests under way, 2*Depth unless
// ConnConfig.Attr has another number, and messages that are being sent count among them.
// Do does not wait for room: a request beyond that is INSUFFICIENT_RESOURCES, and those
// before it have been executed.
//
// When Do returns, for whatever reason, the requests' memory is the program's: no operation
// uses it any more. So when ctx ends first, Do breaks the connection and waits until the
// device has let go; its error is then the context's. Do posts nothing if ctx has ended
// before. No request and a nil ctx are INVALID_PARAMETER, a nil or closed connection is
// INVALID_HANDLE/EP.
func (c *Conn) Do(ctx context.Context, requests ...ep.DTO) error {
	const op = "runtime.Conn.Do"
	switch {
	case c == nil || c.closed.Load():
		return closedConn(op)
	case ctx == nil:
		return nilContext(op)
	case len(requests) == 0:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "no request")
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	var few [2]ep.DTO // of most calls
	posts := append(few[:0], requests...)
	for i := range posts {
		posts[i].Flags &^= hw.Suppress
		posts[i].OneShot = c.events.NewOneShot()
	}
	n, refused := c.Endpoint.PostBatch(posts)
	var failed error
	for i := range posts {
		shot := posts[i].OneShot
		if i < n {
			ev, err := shot.Wait(ctx)
			if err != nil && ctx.Err() != nil { // with ctx alive, the dispatcher was closed, and so the request flushed
				_ = c.Endpoint.Disconnect(ep.Abrupt) // which ends the request, if nothing has yet
				_, _ = shot.Wait(context.Background())
			}
			failed = cmp.Or(failed, err, ev.Err())
		}
		shot.Release()
	}
	return cmp.Or(failed, refused)
}
