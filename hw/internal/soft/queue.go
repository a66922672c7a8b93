package soft

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"godat/hw"
)

// CacheLine is the padding, in bytes, between fields that different processors write.
const CacheLine = 64

// RingLen is the least power of two that is not less than n; it is at least 1.
func RingLen(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

// SendQueue is a ring of requests with one producer, the owner of the queue pair,
// and one consumer, which keeps its position by itself. Positions only grow. The
// producer publishes once for all that it has added; the consumer gives slots back
// before it hands out a completion that could make the owner post again. The owner
// leaves segment lists unchanged until completion, so a slot refers to the owner's list.
type SendQueue struct {
	// The producer makes Slots at the first request, before it moves Tail, and binds at
	// the first bind.
	Slots []hw.SendWR
	Mask  uint64
	Depth uint64
	binds []hw.Bind // copies, one per slot

	Tail  atomic.Uint64 // written by the producer
	added uint64        // requests before it have their slots; the producer's
	_     [CacheLine - 16]byte
	Freed atomic.Uint64 // slots given back; written by the consumer
	_     [CacheLine - 8]byte
}

// Init initializes the queue with that depth.
func (q *SendQueue) Init(depth int) {
	q.Mask, q.Depth = uint64(RingLen(depth)-1), uint64(depth)
}

// Push appends as many requests as there is room for and returns their number. Only
// the producer calls it.
func (q *SendQueue) Push(wrs []hw.SendWR) (n int) {
	for ; n < len(wrs); n++ {
		i, ok := q.Add()
		if !ok {
			break
		}
		s := &q.Slots[i]
		*s = wrs[n]
		if s.Op == hw.OpBind {
			s.Bind = q.copyBind(i, s.Bind)
		}
	}
	q.Publish()
	return n
}

// Add finds a slot for the next request, if there is one. The consumer sees the request after
// Publish. Only the producer calls it.
func (q *SendQueue) Add() (slot uint64, ok bool) {
	at := q.added
	if at-q.Freed.Load() >= q.Depth {
		return 0, false
	}
	if q.Slots == nil {
		q.Slots = make([]hw.SendWR, q.Mask+1)
	}
	q.added = at + 1
	return at & q.Mask, true
}

// Publish publishes the requests that were added. Only the producer calls it.
func (q *SendQueue) Publish() {
	if q.added != q.Tail.Load() {
		q.Tail.Store(q.added)
	}
}

// copyBind copies the argument of a bind, because the owner may use it again when the
// post has returned.
func (q *SendQueue) copyBind(at uint64, b *hw.Bind) *hw.Bind {
	if q.binds == nil { // most queues never have one
		q.binds = make([]hw.Bind, len(q.Slots))
	}
	q.binds[at] = *b
	return &q.binds[at]
}

// SegmentAt returns the i-th of the segments that lie stride bytes apart.
func SegmentAt(sge *hw.SGE, stride uintptr, i int) *hw.SGE {
	return (*hw.SGE)(unsafe.Add(unsafe.Pointer(sge), uintptr(i)*stride))
}
