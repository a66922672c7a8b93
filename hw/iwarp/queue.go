package iwarp

import (
	"sync/atomic"

	"godat/hw"
	"godat/hw/internal/soft"
)

// sendQueue holds requests from the post to their completion.
type sendQueue struct {
	soft.SendQueue
	// The token holder's, per slot: where in the stream its last octet is, and
	// which read it is, counted from 1.
	ends  []uint64
	reads []uint64
}

func newSendQueue(depth int) *sendQueue {
	q := &sendQueue{}
	q.Init(depth)
	q.ends, q.reads = make([]uint64, len(q.Slots)), make([]uint64, len(q.Slots))
	return q
}

// recvQueue holds receives, as a [soft.SendQueue] holds requests.
type recvQueue struct {
	slots []hw.RecvWR
	mask  uint64
	depth uint64
	_     [soft.CacheLine]byte
	tail  atomic.Uint64
	_     [soft.CacheLine]byte
	freed atomic.Uint64
	_     [soft.CacheLine]byte
}

func newRecvQueue(depth int) *recvQueue {
	n := soft.RingLen(depth)
	return &recvQueue{slots: make([]hw.RecvWR, n), mask: uint64(n - 1), depth: uint64(depth)}
}

// push appends receives of at most so many segments while there is room.
func (q *recvQueue) push(wrs []hw.RecvWR, segments int) int {
	tail := q.tail.Load()
	room := q.freed.Load() + q.depth - tail
	n := uint64(0)
	for n < room && n < uint64(len(wrs)) && len(wrs[n].SGL) <= segments {
		q.slots[(tail+n)&q.mask] = wrs[n]
		n++
	}
	if n > 0 {
		q.tail.Store(tail + n)
	}
	return int(n)
}

// read is one of our reads or atomics that is outstanding.
type read struct {
	sgl    []hw.SGE
	size   uint32
	stag   uint32 // of the sink, as the peer knows it; an atomic's request id
	atomic bool
}

// readQueue holds them: the token holder pushes, the receiver takes.
type readQueue struct {
	slots  []read
	mask   uint64
	pushed atomic.Uint64
	done   atomic.Uint64
}

// response is what we owe the peer for a request of its, in order.
type response struct {
	kind   responseKind
	stag   uint32
	size   uint32
	srcKey uint32
	to     uint64
	src    uint64
	msn    uint32
	value  uint64 // of an atomic
	// Of a termination: the ULPDU, why, and what to say of our requests.
	term    []byte
	cause   *hw.Cause
	verdict verdict
}

type responseKind uint8

const (
	readResponse responseKind = iota
	atomicResponse
	termination // nothing else can follow
)

// responseQueue holds them: the receiver pushes, the token holder takes.
type responseQueue struct {
	slots  []response
	mask   uint64
	limit  uint64
	pushed atomic.Uint64
	freed  atomic.Uint64
}
