package loop

import (
	"sync/atomic"

	"godat/hw"
	"godat/hw/internal/soft"
)

// Both queues are rings with one producer, the owner of the queue pair, and one
// consumer, the holder of the pipe: see [soft.SendQueue], which has what could not
// be executed at once. The consumer keeps its own place (source.head, target.head).

// recvQueue holds receives. Slots are given back up to lag at a time, which the
// ring has on top of the depth: an owner that keeps to the depth finds room.
type recvQueue struct {
	slots []hw.RecvWR
	mask  uint64
	depth uint64
	lag   uint64
	_     [soft.CacheLine]byte
	tail  atomic.Uint64
	_     [soft.CacheLine]byte
	limit atomic.Uint64 // the tail may go up to here
	_     [soft.CacheLine]byte
}

func newRecvQueue(depth int) *recvQueue {
	n := soft.RingLen(depth + min(depth, 16))
	q := &recvQueue{slots: make([]hw.RecvWR, n), mask: uint64(n - 1), depth: uint64(depth), lag: uint64(n - depth)}
	q.limit.Store(q.depth)
	return q
}

// free gives back the slots before head. The ring is then as far ahead as it has
// room, so the next time is lag receives later.
func (q *recvQueue) free(head uint64) (next uint64) {
	q.limit.Store(head + q.depth + q.lag)
	return head + q.lag
}
