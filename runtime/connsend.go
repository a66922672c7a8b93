package runtime

import (
	"godat/ep"
	"godat/hw"
	"godat/internal/yield"
	"godat/mem"
)

// Send sends the bytes in use of a buffer as one message. It takes the buffer from the
// program, also when it fails, and returns it to the pool when the message has been
// sent; no event tells of that. On a connection that has ended, and that is not closed,
// Send succeeds and sends nothing. Errors are those of [ep.Endpoint.PostSend].
//
// INVALID_PARAMETER is a nil buffer, one of another connection or pool, and one that the
// program does not have any more, because it has sent or released it; nothing happens
// to that buffer. A nil or closed connection is INVALID_HANDLE/EP.
func (c *Conn) Send(b *mem.Buffer) error {
	tag, err := c.lend("runtime.Conn.Send", b)
	if err != nil {
		return err
	}
	yield.Point()
	if err = c.own.PostSend(sendCookie|tag, b.Segment()); err != nil {
		c.retire(tag)
		err = unlessOver(err)
	}
	c.refill()
	return err
}

// lend takes a buffer from the program for a send. A closed connection gives it to the pool,
// which may wait for it.
func (c *Conn) lend(op string, b *mem.Buffer) (tag uint64, err error) {
	if !c.has(b) {
		return 0, c.whyNot(op, b)
	}
	tag, ok := c.buffers.Lend(b)
	switch {
	case c.closed.Load():
		if ok {
			c.retire(tag)
		}
		return 0, closedConn(op)
	case !ok:
		return 0, c.whyNot(op, b)
	}
	return tag, nil
}

// unlessOver is nil for the error of a post on a connection that has ended: its last event
// tells of that.
func unlessOver(err error) error {
	if e, ok := err.(*hw.Error); ok && e.Sub == hw.StateEPDisconnected {
		return nil
	}
	return err
}

// Queue is Send for a server that has more messages to send: the message goes out with
// the next Flush, together with all that was queued. One goroutine at a time calls
// Queue, Outbox and Flush. Errors are those of Send and of [ep.Outbox.Add].
func (c *Conn) Queue(b *mem.Buffer) error {
	return c.queue("runtime.Conn.Queue", b, hw.OpSend, 0)
}

// QueueInvalidate is Queue for a message that also invalidates a context of the peer's
// (see [ep.Endpoint.PostSendInvalidate]), on an adapter whose Attr().Ops has
// OpSendInvalidate. On others the next Flush fails with MODEL_NOT_SUPPORTED.
func (c *Conn) QueueInvalidate(b *mem.Buffer, context uint32) error {
	return c.queue("runtime.Conn.QueueInvalidate", b, hw.OpSendInvalidate, context)
}

func (c *Conn) queue(op string, b *mem.Buffer, send hw.Op, context uint32) error {
	tag, err := c.lend(op, b)
	if err != nil {
		return err
	}
	d, err := c.own.Next(c.outbox)
	if err != nil {
		c.retire(tag)
		return err
	}
	d.Op, d.Cookie, d.Segment, d.Immediate = send, sendCookie|tag, b.Segment(), context
	if c.buffers.IsOver() { // by the adapter's close, too: nothing flushes the outbox any more
		c.retire(tag)
		return closedConn(op)
	}
	return nil
}

// Outbox is the connection's outbox. What the program adds to it goes out with the
// queued messages, in order: for example an RDMA write before the message that tells of
// it.
func (c *Conn) Outbox() *ep.Outbox {
	if c == nil {
		return nil
	}
	return c.outbox
}

// Flush posts all that was queued as one batch. Errors are those of [ep.Outbox.Flush]: on
// a connection that has ended INVALID_STATE/EP_DISCONNECTED, and nothing goes out;
// a nil or closed connection is INVALID_HANDLE/EP.
func (c *Conn) Flush() error {
	if !c.isMade() || c.closed.Load() {
		return closedConn("runtime.Conn.Flush")
	}
	err := c.outbox.Flush()
	c.refill()
	return err
}

func (c *Conn) whyNot(op string, b *mem.Buffer) error {
	switch {
	case c == nil:
		return closedConn(op)
	case b == nil:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "no buffer: Message was asked of an event twice, or of another's; Buffer had none free (WaitBuffer waits for one); or the connection is closed or being shut down")
	case c.closed.Load():
		return closedConn(op)
	case !c.has(b):
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "the buffer is not of this connection: its Buffer, Message and Receive give the program buffers")
	}
	return hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "this buffer has been sent or released; take another by Buffer or Message")
}
