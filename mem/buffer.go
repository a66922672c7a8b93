package mem

import (
	"io"
	"math"

	"godat/hw"
	"godat/internal/door"
	"godat/internal/memory"
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
	n       int  // bytes in use
	isApart bool // it comes back to those that are set apart

	owner memory.Ownership
}

// Ownership is the word that says who has the buffer. Only a connection of package
// runtime calls it. The buffer must not be nil.
func (b *Buffer) Ownership(door.Key) *memory.Ownership { return &b.owner }

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
	b.check(memory.Holder, "used")
	return b.memory[:b.n]
}

// Resize sets the length in use to n bytes, and returns them; their contents do not
// change. It panics if n is not within 0 and [Buffer.Cap].
func (b *Buffer) Resize(n int) []byte {
	if b == nil {
		return []byte(nil)[:n]
	}
	b.check(memory.Holder, "resized")
	m := b.memory[:n]
	b.n = n
	return m
}

// SetLen is Resize for a caller that does not touch the memory, and that may run beside
// the pool's Close. Only a connection of package runtime calls it. The buffer must not be
// nil.
func (b *Buffer) SetLen(_ door.Key, n int) { b.n = len(b.memory[:n]) }

// Write appends p to the bytes in use. Bytes that find no room are not written, and
// the error is then [io.ErrShortBuffer]. If the pool's memory has been freed, by its
// own close or its adapter's, nothing is written and the error is INVALID_HANDLE/LMR.
// Write may run beside that close. It implements [io.Writer].
func (b *Buffer) Write(p []byte) (int, error) {
	if b == nil {
		return 0, io.ErrShortBuffer
	}
	if w := b.pool.watch; w != nil {
		w.checkOwner(b, memory.Holder, "written")
	}
	n := -1
	b.pool.lmr.touch(func() { n = copy(b.memory[b.n:], p) })
	if n < 0 {
		return 0, deadLMR("mem.Buffer.Write")
	}
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

// Lend gives the buffer to an operation that is about to be posted. A program calls it
// so that Put, and with Debug every other method, refuses the buffer before Return. It
// does nothing if the caller does not hold the buffer; with Debug it panics then.
func (b *Buffer) Lend() {
	if b != nil {
		b.check(memory.Holder, "lent")
		b.owner.Lend()
	}
}

// Return takes the buffer back from an operation that has completed or was not
// posted, and sets the length in use to n bytes.
func (b *Buffer) Return(n int) {
	if b == nil {
		return
	}
	b.check(memory.Operation, "returned")
	b.owner.Return(b.owner.Tag())
	b.n = len(b.memory[:n])
}

// Put gives the buffer back to its pool; the caller must not use it afterwards. Put
// panics if the pool has the buffer already, or if the buffer was lent and Return was not
// called. It does nothing if the pool is closed, by itself or with its adapter.
func (b *Buffer) Put() {
	if b == nil || b.pool.lmr.dead.Load() {
		return
	}
	w := b.pool.watch
	if !b.owner.Put() {
		w.complain(b, "put twice, or while it was lent")
	}
	if w != nil {
		w.put(b)
	}
	b.pool.give(b)
}

// PutLent takes the buffer from the operation with that tag for the caller, which calls
// Free next; false if no such operation has it. Only a connection of package runtime
// calls both. The buffer must not be nil.
func (b *Buffer) PutLent(_ door.Key, tag uint64) bool { return b.owner.PutLent(tag) }

// Free gives the pool the buffer that PutLent has taken.
func (b *Buffer) Free(door.Key) {
	if b.pool.lmr.dead.Load() {
		return
	}
	if w := b.pool.watch; w != nil {
		w.put(b)
	}
	b.pool.give(b)
}

// check panics, under Debug, unless the buffer has that owner.
func (b *Buffer) check(owner memory.BufferOwner, what string) {
	if b.pool.watch != nil {
		b.pool.watch.check(b, owner, what)
	}
}

// leakError is the error for a buffer that was never put.
func leakError(text string) error {
	return &hw.Error{Op: "mem.BufferPool.Close", Type: hw.InvalidState, Sub: hw.StateLMRInUse, Text: text}
}
