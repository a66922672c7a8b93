package ring

import (
	"sync/atomic"

	"godat/internal/yield"
)

// spare is how many places a ring has beyond its capacity, because a consumer gives places back together:
// it stores into the producer's cache line once for all that it pops.
const spare = 32

// SPSC is a bounded ring with one producer and one consumer. The producer calls
// PushAll and Free, the consumer PopAll and Empty; each side is one
// goroutine at a time.
type SPSC[T any] struct {
	// Immutable.
	values []T // as many as a power of two
	limit  uint64
	_      [cacheLine - sliceSize - 8]byte

	// The producer's.
	tail uint64 // next free position
	room uint64 // credit, as last seen: tail may go up to room+limit
	_    [cacheLine - 16]byte

	published atomic.Uint64 // values before it may be taken
	_         [cacheLine - 8]byte

	// The consumer's.
	next  uint64 // position of the next value to take
	avail uint64 // published, as last seen
	_     [cacheLine - 16]byte

	credit atomic.Uint64 // places before it are free again
	_      [cacheLine - 8]byte
}

// NewSPSC makes a ring that holds at least capacity values, and up to 32 more.
func NewSPSC[T any](capacity int) *SPSC[T] {
	r := new(SPSC[T])
	r.limit = uint64(max(capacity, 1)) + spare
	r.values = make([]T, powerOfTwo(int(r.limit)))
	return r
}

// Free is how many values PushAll would take now.
func (r *SPSC[T]) Free() int {
	r.room = r.credit.Load()
	return int(r.room + r.limit - r.tail)
}

// PushAll appends as many of vs as fit, in order, and reports how many. The
// consumer sees them all at the same time.
func (r *SPSC[T]) PushAll(vs []T) int {
	n := int(r.room + r.limit - r.tail)
	if n < len(vs) {
		n = r.Free()
	}
	n = min(n, len(vs))
	if n == 0 {
		return 0
	}
	at := int(r.tail & uint64(len(r.values)-1))
	k := copy(r.values[at:], vs[:n])
	copy(r.values, vs[k:n])
	r.tail += uint64(n)
	yield.Point()
	r.published.Store(r.tail)
	return n
}

// Empty reports whether there is nothing to pop.
func (r *SPSC[T]) Empty() bool {
	return r.next == r.avail && r.published.Load() == r.next
}

// PopAll moves the next values into buf and reports how many.
func (r *SPSC[T]) PopAll(buf []T) int {
	if int(r.avail-r.next) < len(buf) {
		r.avail = r.published.Load()
	}
	n := min(int(r.avail-r.next), len(buf))
	at := int(r.next & uint64(len(r.values)-1))
	k := copy(buf[:n], r.values[at:])
	copy(buf[k:n], r.values)
	r.next += uint64(n)
	yield.Point()
	r.giveBack()
	return n
}

// giveBack gives back all places that are free.
func (r *SPSC[T]) giveBack() {
	if r.credit.Load() != r.next {
		r.credit.Store(r.next)
	}
}
