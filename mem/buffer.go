package mem

import (
	"fmt"
	"io"
	"math"

	"godat/hw"
	"godat/internal/memory"
)

// Buffer is a piece of registered memory with a length, from a [BufferPool]. It has
// one owner at a time: the pool, the holder that got it, or an operation that it
// was lent to. The holder alone calls the methods of a buffer, except Index, Cap
// and String, which may be called at any time, and Return, which ends a Lend.
//
// The memory is the holder's until it gives the buffer back, also behind the end of the
// pool, of its zone and of its adapter: it stays as it is, and the last buffer that comes
// back frees it. Operations on it fail from then on, as [LMR.Free] says.
//
// A nil buffer has no room and no pool: its methods return zero values, and refuse
// what would need room. So do those of a buffer that was given back, once its pool is
// closed.
type Buffer struct {
	pool  *BufferPool // immutable
	index uint32      // immutable

	// Owned by the buffer's owner.
	isApart bool // it comes back to those that are set apart
	n       int  // bytes in use

	owner memory.Ownership
}

// Index returns the buffer's number in its pool, from 0; see [BufferPool.At].
func (b *Buffer) Index() int {
	if b == nil {
		return 0
	}
	return int(b.index)
}

// Cap returns how many bytes the buffer has room for.
func (b *Buffer) Cap() int {
	if b == nil {
		return 0
	}
	return b.pool.size
}

// Bytes returns the memory in use, whose length Resize, Write and Return set. The
// slice is valid as long as the caller holds the buffer.
func (b *Buffer) Bytes() []byte {
	if b == nil || b.isGone() {
		return nil
	}
	b.check(memory.Holder, "used")
	return b.memory()[:b.n]
}

// Resize sets the length in use to n bytes, and returns them; their contents do not
// change. It panics if n is not within 0 and [Buffer.Cap].
func (b *Buffer) Resize(n int) []byte {
	if b == nil || b.isGone() {
		return []byte(nil)[:n]
	}
	b.check(memory.Holder, "resized")
	m := b.memory()[:n]
	b.n = n
	return m
}

// at is where the buffer begins in its region.
func (b *Buffer) at() int { return int(b.index) * b.pool.step }

// memory is all that the buffer has room for.
func (b *Buffer) memory() []byte {
	at := b.at()
	return b.pool.lmr.buf[at : at+b.pool.size : at+b.pool.size]
}

// isGone reports whether the memory may be unmapped: the pool is closed, and has the
// buffer.
func (b *Buffer) isGone() bool { return b.pool.isOver() && b.owner.Owner() == memory.Pool }

// Write appends p to the bytes in use. Bytes that find no room are not written, and
// the error then wraps [io.ErrShortBuffer]. For a buffer that was given back to a pool that
// is closed, by itself or with its adapter, the error is INVALID_HANDLE/LMR, and for one that was
// sent, lent or given back to a pool that is not closed INVALID_STATE. It implements
// [io.Writer].
func (b *Buffer) Write(p []byte) (int, error) {
	if b == nil {
		return 0, io.ErrShortBuffer
	}
	if b.isGone() {
		return 0, deadLMR("mem.Buffer.Write")
	}
	b.check(memory.Holder, "written")
	if b.owner.Owner() != memory.Holder {
		return 0, hw.Errorf("mem.Buffer.Write", hw.InvalidState, hw.NoSubtype, "the buffer has been sent, lent or given back; its memory is not the caller's")
	}
	n := copy(b.memory()[b.n:], p)
	b.n += n
	if n < len(p) {
		return n, fmt.Errorf("mem.Buffer.Write: %w: of %d bytes %d found room in the buffer of %d: divide them, or make buffers larger (ConnConfig.Message, BufferPoolConfig.Size)", io.ErrShortBuffer, len(p), n, len(b.memory()))
	}
	return n, nil
}

// Segment names the bytes in use for a local operation. Every post refuses the
// segment of a nil buffer.
func (b *Buffer) Segment() Segment {
	if b == nil {
		return Segment{Addr: math.MaxUint64, Len: math.MaxUint32} // as that of a nil region
	}
	l := b.pool.lmr
	return Segment{Addr: l.base + uint64(b.at()), Len: uint32(b.n), Context: l.context}
}

// Remote names the bytes in use for a peer, which may access them as far as the
// pool's privileges allow. No peer can access the segment of a nil buffer.
func (b *Buffer) Remote() RemoteSegment {
	if b == nil {
		return (*LMR)(nil).Remote(0, 1)
	}
	return b.pool.lmr.Remote(b.at(), b.n)
}

// Lend gives the buffer to an operation that is about to be posted. A program calls it
// so that Put, and with Debug every other method, refuses the buffer before Return. It
// does nothing if the caller does not hold the buffer; with Debug it panics then.
func (b *Buffer) Lend() {
	if b != nil {
		b.check(memory.Holder, "lent")
		b.owner.LendOut()
	}
}

// Return takes the buffer back from an operation that has completed or was not
// posted, and sets the length in use to n bytes. It does nothing if no operation has the
// buffer; with Debug it panics then.
func (b *Buffer) Return(n int) {
	if b == nil {
		return
	}
	w := b.pool.watch
	switch {
	case b.owner.TakeBack():
		w.took(b)
		b.n = len(b.memory()[:n])
	case w != nil && !b.isGone():
		w.complain(b, "returned")
	}
}

// Put gives the buffer back to its pool; the caller must not use it, or a slice of it,
// afterwards. Put panics if the pool has the buffer already, or if the buffer was lent and
// Return was not called; if the pool is closed, by itself or with its adapter, it does
// nothing then.
func (b *Buffer) Put() {
	switch {
	case b == nil:
	case b.owner.Put():
		b.give()
	case !b.pool.lmr.dead.Load():
		b.pool.watch.complain(b, "put twice, or while it was lent")
	}
}

// give gives the pool the buffer.
func (b *Buffer) give() {
	if w := b.pool.watch; w != nil {
		w.put(b)
	}
	b.pool.give(b)
}

// check panics, under Debug, unless the buffer has that owner.
func (b *Buffer) check(owner memory.BufferOwner, what string) {
	if w := b.pool.watch; w != nil && b.owner.Owner() != owner {
		w.complain(b, what)
	}
}
