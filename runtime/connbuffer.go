package runtime

import (
	"godat/hw"
	"godat/internal/door"
	"godat/internal/memory"
	"godat/mem"
)

// This file has the ways by which a connection gets its buffers back.

// takeBack takes the buffer of a completed operation back for a holder. It is nil if
// the program took the buffer back itself, by Return, or has had the message already.
func (c *Conn) takeBack(cookie uint64) *mem.Buffer {
	b := c.pool.At(int(uint32(cookie)))
	if !b.Ownership(door.Key{}).Return(cookie & memory.TagMask) {
		return nil
	}
	return b
}

// retire gives the pool the buffer of an operation that has completed or was not posted,
// unless the program took it back itself.
func (c *Conn) retire(cookie uint64) {
	b := c.pool.At(int(uint32(cookie)))
	if b.PutLent(door.Key{}, cookie&memory.TagMask) {
		b.Free(door.Key{})
	}
}

// sent is retire for a send that has completed.
func (c *Conn) sent(cookie uint64) {
	b := c.pool.At(int(uint32(cookie)))
	if b.PutLent(door.Key{}, cookie&memory.TagMask) {
		b.FreeSent(door.Key{})
	}
}

// Buffer takes a buffer of length 0 from the pool, for RDMA or for a message that
// answers none. It is nil, which means that there is no buffer at the moment, when the
// program has Depth such buffers that it has not released, or whose messages are still
// being sent; and when the connection is closed. A Write to a nil buffer is
// [io.ErrShortBuffer], and Send of one INVALID_PARAMETER.
func (c *Conn) Buffer() *Buffer {
	if c == nil || c.closed.Load() {
		return nil
	}
	return c.pool.GetApart(door.Key{})
}

// Message is the buffer with the message that a receive brought. The program owns it
// from then on. It is nil when Message is called again for an event, for all other
// events, also for those of other connections, and when the connection is closed.
func (c *Conn) Message(ev Event) *Buffer {
	if c == nil || ev.Source != c.Endpoint || ev.Cookie&sendCookie != connCookie || ev.Status != hw.StatusSuccess || c.closed.Load() || c.pool == nil {
		return nil
	}
	b := c.takeBack(ev.Cookie)
	if b == nil {
		return nil
	}
	b.SetLen(door.Key{}, int(ev.Length))
	if int(c.missing.Add(1)) >= c.cfg.batch {
		c.receiveMissing()
	}
	return b
}

// has reports whether a buffer is one of the connection's.
func (c *Conn) has(b *Buffer) bool {
	return c != nil && b != nil && c.pool.At(b.Index()) == b
}

// Release gives back a buffer that the program does not send. It does nothing for nil,
// for a buffer of another connection or pool, and on a closed connection. It panics, as
// [mem.Buffer.Put] does, if the buffer has been sent or released already.
func (c *Conn) Release(b *Buffer) {
	if !c.has(b) {
		return
	}
	b.Put()
	c.refill()
}
