package mem

import (
	"io"
	"math"
	"sync/atomic"

	"godat/hw"
)

// Buffer is a piece of registered memory with a length, from a [BufferPool]. It has
// one owner at a time: the pool, whoever got it, or an operation that it was lent
// to. Only the owner calls its methods.
//
// A nil buffer has room for nothing, and no pool: its methods return zero, and refuse
// what would need room.
type Buffer struct {
	// Immutable.
	pool   *BufferPool
	index  uint32
	at     int // offset in the region
	memory []byte

	// The owner's.
	n   int  // bytes in use
	out bool // the pool does not have it

	state atomic.Uint32 // of a pool that watches
}

// The owners of a buffer.
const (
	pooled uint32 = iota
	held          // whoever got it
	lent          // an operation
)

// Index is the buffer's number in its pool, from 0; see [BufferPool.At].
func (b *Buffer) Index() int {
	if b == nil {
		return 0
	}
	return int(b.index)
}

// Cap is how many bytes the buffer has room for.
func (b *Buffer) Cap() int {
	if b == nil {
		return 0
	}
	return len(b.memory)
}

// Bytes is the memory in use: Resize, Write and what was received say how much that
// is. It is the owner's, and no longer than the buffer is.
func (b *Buffer) Bytes() []byte {
	if b == nil {
		return nil
	}
	b.check(held, "used")
	return b.memory[:b.n]
}

// Resize makes n bytes of the buffer those in use, and returns them. What they hold
// stays as it was. It panics when n is not within 0 and [Buffer.Cap].
func (b *Buffer) Resize(n int) []byte {
	if b == nil {
		return []byte(nil)[:n]
	}
	b.check(held, "resized")
	m := b.memory[:n]
	b.n = n
	return m
}

// Write appends p to the bytes in use. What finds no room is not written, and the
// error is [io.ErrShortBuffer] then. It implements [io.Writer].
func (b *Buffer) Write(p []byte) (int, error) {
	if b == nil {
		return 0, io.ErrShortBuffer
	}
	b.check(held, "written")
	n := copy(b.memory[b.n:], p)
	b.n += n
	if n < len(p) {
		return n, io.ErrShortBuffer
	}
	return n, nil
}

// Segment names the bytes in use to a local operation. Every post refuses that of a
// nil buffer.
func (b *Buffer) Segment() Segment {
	if b == nil {
		return Segment{Addr: math.MaxUint64, Len: math.MaxUint32} // as of a nil region
	}
	l := b.pool.lmr
	return Segment{Addr: l.base + uint64(b.at), Len: uint32(b.n), Context: l.context}
}

// Remote names the bytes in use to a peer, which may use them as far as the pool's
// privileges go. No peer can use that of a nil buffer.
func (b *Buffer) Remote() RemoteSegment {
	if b == nil {
		return (*LMR)(nil).Remote(0, 1)
	}
	return b.pool.lmr.Remote(b.at, b.n)
}

// Lend hands the buffer to an operation that is about to be posted. A program calls
// it so that Debug finds what touches the buffer before Return.
func (b *Buffer) Lend() {
	if b != nil && b.pool.watch != nil {
		b.check(held, "lent")
		b.state.Store(lent)
	}
}

// Return takes the buffer back from an operation that has completed, or was not
// posted, with n bytes in use.
func (b *Buffer) Return(n int) {
	if b == nil {
		return
	}
	if b.pool.watch != nil {
		b.check(lent, "returned")
		b.state.Store(held)
	}
	b.n = len(b.memory[:n])
}

// Put gives the buffer back to its pool; its owner forgets it. A buffer that an
// operation has is put when that has completed. It panics when the pool has the
// buffer already, and does nothing when the pool is closed, by itself or with its
// adapter.
func (b *Buffer) Put() {
	if b == nil || b.pool.lmr.dead.Load() {
		return
	}
	w := b.pool.watch
	if w != nil {
		w.put(b)
	}
	if !b.out {
		w.complain(b, "put twice")
	}
	b.out = false
	b.pool.free.Give(b.index)
}

// check complains, under Debug, of a use by anyone but that owner.
func (b *Buffer) check(owner uint32, what string) {
	w := b.pool.watch
	switch {
	case w == nil:
	case b.pool.closed.Load():
		w.complain(b, what+" after its pool was closed")
	case b.state.Load() != owner:
		w.complain(b, what)
	}
}

// leakError is what is wrong with a buffer that was never put.
func leakError(text string) error {
	return &hw.Error{Op: "mem.BufferPool.Close", Type: hw.InvalidState, Sub: hw.StateLMRInUse, Text: text}
}
