package runtime

import (
	"context"
	"errors"

	"godat/hw"
	"godat/hw/event"
	"godat/internal/yield"
	"godat/mem"
)

// This file has the ways by which a connection gets its buffers back.

// retire gives the pool the buffer of an operation that has completed or was not posted,
// unless the program took it back itself.
func (c *Conn) retire(cookie uint64) {
	c.buffers.PutBack(c.pool.At(int(uint32(cookie))), cookie)
}

// Buffer takes a buffer of length 0 from the pool, for RDMA or for a message that
// answers none. It is nil, which means that there is no buffer at the moment, when the
// program has Depth such buffers that it has not released, or whose messages are still
// being sent; and when the connection is closed. A Write to a nil buffer is
// [io.ErrShortBuffer], and Send of one INVALID_PARAMETER.
func (c *Conn) Buffer() *mem.Buffer {
	if c == nil || c.closed.Load() {
		return nil
	}
	return c.pool.Get()
}

// WaitBuffer is Buffer that waits until there is one. Calls that wait get buffers in the
// order in which they came. When ctx ends first, the error is its cause; when the
// connection is closed, INVALID_HANDLE, as for a nil connection, also of calls that wait
// then. A connection that has ended still has its buffers. A nil ctx is INVALID_PARAMETER.
//
// A program that waits for a buffer needs somebody else to give one back: a send that
// completes does, and so must the goroutine that holds the others.
func (c *Conn) WaitBuffer(ctx context.Context) (*mem.Buffer, error) {
	const op = "runtime.Conn.WaitBuffer"
	if c == nil || c.closed.Load() {
		return nil, closedConn(op)
	}
	if ctx == nil {
		return nil, nilContext(op)
	}
	if c.pool == nil {
		return nil, noBuffers(op)
	}
	b, err := c.pool.Wait(ctx)
	if errors.Is(err, hw.ErrInvalidHandle) {
		return nil, closedConn(op)
	}
	return b, err
}

func noBuffers(op string) error {
	return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "a connection with ConnConfig.OwnReceives has no buffers: post to its Endpoint")
}

// Message is the buffer with the message that a receive brought. The program owns it
// from then on. It is nil when Message is called again for an event, for all other
// events, also for those of other connections, and when Shutdown or Close of the
// connection or its listener has begun: the program has not handled that message, and the
// peer hears of the end.
//
// A peer's RDMA write with immediate data brings no message, though it takes a receive: its
// bytes went where the write says, and its number is ev.Immediate(). The connection posts
// that receive again, with the next call that is told of the event or of another one, or
// that gives a buffer back: Message, ConnOf, Send, Flush, Release.
func (c *Conn) Message(ev event.Event) *mem.Buffer {
	if c == nil || ev.Source != c.Endpoint || ev.Cookie&sendCookie != connCookie || ev.Status != hw.StatusSuccess || c.refuses.Load() || c.pool == nil {
		return nil
	}
	if ev.Op == hw.OpRecvImm {
		c.refill()
		return nil
	}
	b := c.pool.At(int(uint32(ev.Cookie)))
	yield.Point()
	if !c.buffers.TakeBack(b, ev.Cookie, int(ev.Length)) {
		return nil // the program has had the message, or took the buffer by Return
	}
	if c.refuses.Load() { // asked once more behind TakeBack, so that drain sees the buffer or is seen here
		b.Put()
		return nil
	}
	if int(c.missing.Add(1)) >= c.cfg.batch {
		c.receiveMissing()
	}
	return b
}

func (c *Conn) has(b *mem.Buffer) bool {
	return c != nil && b != nil && c.pool.At(b.Index()) == b
}

// Release gives back a buffer that the program does not send, also on a closed connection.
// It does nothing for nil, and for a buffer of another connection or pool. It panics, as
// [mem.Buffer.Put] does, if the buffer has been sent or released already; on a closed
// connection it does nothing then.
func (c *Conn) Release(b *mem.Buffer) {
	if !c.has(b) {
		return
	}
	b.Put()
	c.refill()
}
