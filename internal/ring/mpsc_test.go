package ring

import (
	"sync/atomic"

	"godat/internal/yield"
)

// MPSC is a Reserved that counts its places by itself, as its owner does: a bounded ring with many
// producers and one consumer, by which the tests drive a Reserved. Any number of
// goroutines may call Push and PushAll at once; one goroutine at a time may call Pop
// and PopAll.
type MPSC[T any] struct {
	ring  Reserved[T]
	limit uint64
	_     [cacheLine - 8]byte

	// credit is the position up to which the consumer has given places back.
	credit atomic.Uint64
	_      [cacheLine - 8]byte
}

// NewMPSC makes a ring that holds at least capacity values. Because places come
// back in batches it may hold up to 32 more.
func NewMPSC[T any](capacity int) *MPSC[T] {
	r := new(MPSC[T])
	r.limit = uint64(max(capacity, 1)) + spare
	r.ring.Init(int(r.limit))
	return r
}

// Push appends v. It reports false, and does nothing, when the ring is full.
func (r *MPSC[T]) Push(v *T) bool {
	for {
		t := r.ring.tail.Load()
		if t-r.credit.Load() >= r.limit {
			if t == r.ring.tail.Load() {
				return false
			}
			continue // credit may have passed t meanwhile
		}
		yield.Point()
		if r.ring.tail.CompareAndSwap(t, t+1) {
			r.ring.publishAll(t, []T{*v})
			return true
		}
	}
}

// PushAll appends as many of vs as fit, in order with no other value in between,
// and reports how many. One publication covers them all.
func (r *MPSC[T]) PushAll(vs []T) int {
	for {
		t := r.ring.tail.Load()
		used := t - r.credit.Load()
		if used > r.limit {
			continue // credit has passed t meanwhile
		}
		n := min(uint64(len(vs)), r.limit-used, maxBatch)
		if n == 0 {
			return 0
		}
		yield.Point()
		if r.ring.tail.CompareAndSwap(t, t+n) {
			r.ring.publishAll(t, vs[:n])
			return int(n)
		}
	}
}

// Pop moves the next value into v. It reports false when there is none.
func (r *MPSC[T]) Pop(v *T) bool {
	q := &r.ring
	if q.next == q.avail && !q.look() {
		r.giveBack()
		return false
	}
	*v = q.cells[q.next&uint64(len(q.cells)-1)].Value
	q.next++
	if q.next%spare == 0 {
		r.credit.Store(q.next)
	}
	return true
}

// PopAll moves the next values into buf and reports how many.
func (r *MPSC[T]) PopAll(buf []T) int {
	n := r.ring.Take(buf)
	r.giveBack()
	return n
}

// giveBack gives back all places that are free.
func (r *MPSC[T]) giveBack() {
	if r.credit.Load() != r.ring.next {
		r.credit.Store(r.ring.next)
	}
}

// NewReserved makes a ring with at least places places.
func NewReserved[T any](places int) *Reserved[T] {
	r := new(Reserved[T])
	r.Init(places)
	return r
}
