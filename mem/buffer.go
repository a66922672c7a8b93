package mem

import (
	"io"
	"math"
	"sync/atomic"

	"godat/hw"
)

// Buffer is a piece of registered memory with a length, from a [BufferPool]. It has
// one owner at a time: the pool, the holder that got it, or an operation that it
// was lent to. The holder alone calls the methods of a buffer, except Index, Cap
// and String, which may be called at any time, and Return, which ends a Lend.
//
// A nil buffer has no room and no pool: its methods return zero values, and refuse
// what would need room.
type Buffer struct {
	// Immutable.
	pool   *BufferPool
	index  uint32
	at     int // offset in the region
	memory []byte

	// Owned by the buffer's owner.
	n   int  // bytes in use
	out bool // the buffer is not in the pool

	state atomic.Uint32 // kept by a pool with Debug
}

// The owners of a buffer.
const (
	pooled uint32 = iota
	held          // the holder that got it
	lent          // an operation
)

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
	return len(b.memory)
}

// Bytes returns the memory in use, whose length Resize, Write and Return set. The
// slice is valid as long as the caller holds the buffer.
func (b *Buffer) Bytes() []byte {
	if b == nil {
		return nil
	}
	b.check(held, "used")
	return b.memory[:b.n]
}

// Resize sets the length in use to n bytes, and returns them; their contents do not
// change. It panics if n is not within 0 and [Buffer.Cap].
func (b *Buffer) Resize(n int) []byte {
	if b == nil {
		return []byte(nil)[:n]
	}
	b.check(held, "resized")
	m := b.memory[:n]
	b.n = n
	return m
}

// Write appends p to the bytes in use. Bytes that find no room are not written, and
// the error is then [io.ErrShortBuffer]. It implements [io.Writer].
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

// Segment names the bytes in use for a local operation. Every post refuses the
// segment of a nil buffer.
func (b *Buffer) Segment() Segment {
	if b == nil {
		return Segment{Addr: math.MaxUint64, Len: math.MaxUint32} // as that of a nil region
	}
	l := b.pool.lmr
	return Segment{Addr: l.base + uint64(b.at), Len: uint32(b.n), Context: l.context}
}

// Remote names the bytes in use for a peer, which may access them as far as the
// pool's privileges allow. No peer can access the segment of a nil buffer.
func (b *Buffer) Remote() RemoteSegment {
	if b == nil {
		return (*LMR)(nil).Remote(0, 1)
	}
	return b.pool.lmr.Remote(b.at, b.n)
}

// Lend gives the buffer to an operation that is about to be posted. A program calls
// it so that Debug finds any use of the buffer before Return; without Debug it does
// nothing.
func (b *Buffer) Lend() {
	if b != nil && b.pool.watch != nil {
		b.check(held, "lent")
		b.state.Store(lent)
	}
}

// Return takes the buffer back from an operation that has completed or was not
// posted, and sets the length in use to n bytes.
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

// Put gives the buffer back to its pool; the caller must not use it afterwards. A
// buffer that an operation uses may be put only when that operation has completed.
// Put panics if the buffer is in the pool already, and does nothing if the pool is
// closed, by itself or with its adapter.
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

// check panics, under Debug, unless the buffer has that owner.
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

// leakError is the error for a buffer that was never put.
func leakError(text string) error {
	return &hw.Error{Op: "mem.BufferPool.Close", Type: hw.InvalidState, Sub: hw.StateLMRInUse, Text: text}
}
