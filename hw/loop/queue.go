package loop

import (
	"sync/atomic"
	"unsafe"

	"godat/hw"
	"godat/hw/internal/soft"
)

// Both queues are rings with one producer, the owner of the queue pair, and one
// consumer, the holder of the pipe. [soft.SendQueue] holds the requests that could not
// be executed at once. The consumer keeps its own position (source.head, target.head).

// recvQueue holds receives. The consumer gives slots back up to lag at a time. The ring
// has lag slots on top of the depth, so an owner that keeps to the depth finds room.
type recvQueue struct {
	// The consumer writes limit, once for lag receives; the rest of the line is immutable.
	slots []receive
	mask  uint64
	depth uint64
	lag   uint64
	limit atomic.Uint64 // the producer may move the tail up to here
	_     [8]byte

	tail atomic.Uint64 // written by the producer
	_    [soft.CacheLine - 8]byte
}

// receive is a [hw.RecvWR] in less room.
type receive struct {
	id  uint64
	sgl *hw.SGE
	n   int // segments
}

func (r *receive) set(id uint64, sgl []hw.SGE) {
	r.id, r.sgl, r.n = id, unsafe.SliceData(sgl), len(sgl)
}

func (r *receive) list() []hw.SGE { return unsafe.Slice(r.sgl, r.n) }

func newRecvQueue(depth int) *recvQueue {
	n := soft.RingLen(depth + min(depth, 8))
	q := &recvQueue{slots: make([]receive, n), mask: uint64(n - 1), depth: uint64(depth), lag: uint64(n - depth)}
	q.limit.Store(q.depth)
	return q
}

// free gives back the slots before head, and returns the head at which to call it next.
// It moves the limit by the ring's whole length, so that is lag receives later.
func (q *recvQueue) free(head uint64) (next uint64) {
	q.limit.Store(head + q.depth + q.lag)
	return head + q.lag
}
