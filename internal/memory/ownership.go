package memory

import (
	"sync/atomic"

	"godat/internal/release"
)

// BufferOwner is who has a buffer.
type BufferOwner uint8

// The owners of a buffer.
const (
	Pool      BufferOwner = iota // it is free
	Holder                       // the caller that got it
	Operation                    // an operation of the connection that has the pool
	Lent                         // an operation that the holder lent it to
)

// Ownership says who has a buffer. A buffer changes hands only by its methods, which
// any goroutine may call: of two calls that want the buffer from the same owner, one
// succeeds. So a program that sends or puts a buffer which it no longer has is found at
// that call, and not when an operation completes.
//
// The word is the owner, above a tag of 62 bits: whether an operation got the buffer from a
// holder, the buffer's turn, and its index. A turn begins whenever the buffer comes to a
// holder. An operation that remembers the tag takes back no buffer that has meanwhile gone
// elsewhere.
type Ownership struct{ word atomic.Uint64 }

const (
	ownerShift = 62
	turn       = 1 << 32
	holder     = uint64(Holder) << ownerShift
	operation  = uint64(Operation) << ownerShift
	lent       = uint64(Lent) << ownerShift

	fromHolder = 1 << (ownerShift - 1)
	turnMask   = fromHolder - 1 // of the turn and the index

	// TagMask has the bits of a tag.
	TagMask = 1<<ownerShift - 1
)

// Init gives the pool the buffer with that index.
func (o *Ownership) Init(index uint32) { o.word.Store(uint64(index)) }

// Owner returns who has the buffer at this moment.
func (o *Ownership) Owner() BufferOwner { return BufferOwner(o.word.Load() >> ownerShift) }

// Turn tells the times apart that somebody other than the pool has had the buffer.
func (o *Ownership) Turn() uint64 { return o.word.Load() & turnMask }

// Get gives a holder the buffer, which the caller took from the pool's free ones. Until
// the store nothing else changes the word: all other methods want a buffer that is not
// in the pool.
func (o *Ownership) Get() { release.Uint64(&o.word, (o.word.Load()+turn)&turnMask|holder) }

// GetLent is Get and Lend in one: an operation has the buffer, and the caller its tag.
func (o *Ownership) GetLent() (tag uint64) {
	tag = (o.word.Load() + turn) & turnMask
	release.Uint64(&o.word, tag|operation)
	return tag
}

// Put takes the buffer from its holder into the pool; false if no holder has it.
func (o *Ownership) Put() bool { return o.move(holder, 0) }

// move takes the buffer from the owner from for the owner to; false if from has it not.
func (o *Ownership) move(from, to uint64) bool {
	w := o.word.Load()
	return w&^TagMask == from && o.word.CompareAndSwap(w, w&TagMask|to)
}

// Lend takes the buffer from its holder for an operation of the connection, and returns
// the tag; false if no holder has it.
func (o *Ownership) Lend() (tag uint64, ok bool) {
	w := o.word.Load()
	tag = w&turnMask | fromHolder
	return tag, w&^TagMask == holder && o.word.CompareAndSwap(w, tag|operation)
}

// IsFromHolder reports whether an operation has the buffer that got it from a holder, as a
// send does, and a receive does not.
func (o *Ownership) IsFromHolder() bool {
	return o.word.Load()&^turnMask == operation|fromHolder
}

// LendOut takes the buffer from its holder for an operation that the holder posts; false
// if no holder has it. The buffer remains the holder's to take back.
func (o *Ownership) LendOut() bool { return o.move(holder, lent) }

// TakeBack gives the buffer back to a holder, whichever operation has it; false if none
// does.
func (o *Ownership) TakeBack() bool {
	w := o.word.Load()
	return w&operation != 0 && o.word.CompareAndSwap(w, (w+turn)&turnMask|holder)
}

// PutOperations is PutLent of whichever operation of the connection has the buffer.
func (o *Ownership) PutOperations() bool { return o.move(operation, 0) }

// PutLent is Return and Put in one; false if no operation with that tag has the buffer.
func (o *Ownership) PutLent(tag uint64) bool {
	return o.word.CompareAndSwap(tag|operation, tag)
}

// Return gives the buffer back to a holder; false if no operation with that tag has it.
func (o *Ownership) Return(tag uint64) bool {
	return o.word.CompareAndSwap(tag|operation, (tag+turn)&turnMask|holder)
}
