package loop

import (
	"sync/atomic"

	"godat/hw"
	"godat/hw/internal/soft"
)

// Both queues are rings with one producer, the owner of the queue pair, and one
// consumer, the holder of the pipe. Positions only grow. The producer publishes
// once per call. Where the consumer stands is its own (pipe.sendHead,
// pipe.recvHead); it gives slots back in batches, before a completion that could
// make the owner post again.

// sendQueue holds what could not be executed at once. Segment lists are the
// owner's until completion, so a slot holds a slice of them.
type sendQueue struct {
	slots []hw.SendWR
	mask  uint64
	depth uint64
	_     [soft.CacheLine]byte
	tail  atomic.Uint64
	_     [soft.CacheLine]byte
	freed atomic.Uint64 // slots given back
	_     [soft.CacheLine]byte
}

func newSendQueue(depth int) *sendQueue {
	n := soft.RingLen(depth)
	return &sendQueue{slots: make([]hw.SendWR, n), mask: uint64(n - 1), depth: uint64(depth)}
}

// push appends as many as there is room for and says how many.
func (q *sendQueue) push(wrs []hw.SendWR) int {
	tail := q.tail.Load()
	n := min(uint64(len(wrs)), q.freed.Load()+q.depth-tail)
	for i := range wrs[:n] {
		s := &q.slots[(tail+uint64(i))&q.mask]
		*s = wrs[i]
		if s.Op == hw.OpBind { // which the owner may use again, as the array
			bind := *s.Bind
			s.Bind = &bind
		}
	}
	if n > 0 {
		q.tail.Store(tail + n)
	}
	return int(n)
}

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
