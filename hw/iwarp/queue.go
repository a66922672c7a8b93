package iwarp

import (
	"sync/atomic"
	"unsafe"

	"godat/hw"
	"godat/hw/internal/soft"
)

// sendQueue holds requests from the post to their completion. The poster makes what there
// is for each slot with its first post.
type sendQueue struct {
	soft.SendQueue
	// Owned by the sender, per slot: the position in the stream behind the request's last
	// octet; and the number of the read or atomic, counted from 1, or 0.
	ends  []uint64
	reads []uint64

	ones []hw.SGE // the segments of plain requests, per slot; the poster's, as the slots
}

func newSendQueue(depth int) *sendQueue {
	q := &sendQueue{}
	q.Init(depth)
	return q
}

// ready makes what there is for each slot. The sender sees it, as it sees the first request.
func (q *sendQueue) ready() {
	if q.ones == nil {
		n := q.Mask + 1
		q.ends, q.reads, q.ones = make([]uint64, n), make([]uint64, n), make([]hw.SGE, n)
	}
}

// push appends as many requests as there is room for and returns their number.
func (q *sendQueue) push(wrs []hw.SendWR) int {
	q.ready()
	return q.Push(wrs)
}

// addPlain adds a request of one segment, of which it keeps a copy. It returns false if there
// is no room.
func (q *sendQueue) addPlain(op hw.Op, flags hw.WRFlags, id uint64, sge *hw.SGE, rkey uint32, addr uint64) bool {
	q.ready()
	i, ok := q.Add()
	if !ok {
		return false
	}
	q.ones[i] = *sge
	wr := &q.Slots[i] // field by field: plain requests have no others
	wr.ID, wr.Op, wr.Flags, wr.SGL = id, op, flags, q.ones[i:i+1:i+1]
	wr.RKey, wr.RemoteAddr = rkey, addr
	return true
}

// recvQueue holds receives, as a [soft.SendQueue] holds requests, or takes them from a
// shared receive queue.
type recvQueue struct {
	// Immutable.
	slots []hw.RecvWR
	mask  uint64
	depth uint64
	srq   *soft.SRQ // unless nil, the receives come from here and not from slots

	_     [soft.CacheLine]byte
	tail  atomic.Uint64 // written by the poster
	_     [soft.CacheLine]byte
	freed atomic.Uint64 // written by the receiver
	_     [soft.CacheLine]byte

	// Owned by the receiver.
	head  uint64    // the next receive to claim
	drawn hw.RecvWR // the receive claimed last, from srq
}

func newRecvQueue(depth int, srq *soft.SRQ) *recvQueue {
	n := soft.RingLen(depth)
	return &recvQueue{slots: make([]hw.RecvWR, n), mask: uint64(n - 1), depth: uint64(depth), srq: srq}
}

// claim finds a receive for a new message, and reports whether there is one.
func (q *recvQueue) claim() bool {
	if q.srq != nil {
		return q.srq.Take(&q.drawn)
	}
	return q.head != q.tail.Load()
}

// claimed is the receive of the present message.
func (q *recvQueue) claimed() *hw.RecvWR {
	if q.srq != nil {
		return &q.drawn
	}
	return &q.slots[q.head&q.mask]
}

// push appends receives while there is room, up to the first with more than that many
// segments, and returns their number.
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

// pushRun is push of up to n receives of one segment each, as [hw.Runner] describes a run.
func (q *recvQueue) pushRun(id uint64, sge *hw.SGE, stride uintptr, n int) int {
	tail := q.tail.Load()
	n = int(min(uint64(n), q.freed.Load()+q.depth-tail))
	for i := range n {
		wr := &q.slots[(tail+uint64(i))&q.mask]
		wr.ID, wr.SGL = id+uint64(i), unsafe.Slice(soft.SegmentAt(sge, stride, i), 1)
	}
	if n > 0 {
		q.tail.Store(tail + uint64(n))
	}
	return n
}

// read is an outstanding read or atomic of this end.
type read struct {
	sgl    []hw.SGE
	size   uint32
	stag   uint32 // the sink's STag as the peer knows it; of an atomic, the request's identifier
	atomic bool
	op     hw.Op
}

// fifo is a ring with one goroutine that pushes and one that retires.
type fifo[T any] struct {
	slots  []T // made with the first value
	mask   uint64
	pushed atomic.Uint64
	done   atomic.Uint64
}

func (q *fifo[T]) init(depth int) { q.mask = uint64(soft.RingLen(depth) - 1) }

// outstanding is the number of values that are pushed and not retired.
func (q *fifo[T]) outstanding() uint64 { return q.pushed.Load() - q.done.Load() }

// push enters a value. There is room for it, because the one that pushes limits those that are
// outstanding.
func (q *fifo[T]) push(v T) {
	if q.slots == nil {
		q.slots = make([]T, q.mask+1)
	}
	n := q.pushed.Load()
	q.slots[n&q.mask] = v
	q.pushed.Store(n + 1)
}

// readQueue holds the outstanding reads and atomics in order: the sender pushes, the
// receiver retires.
type readQueue struct{ fifo[read] }

// oldest is the oldest outstanding read, or nil.
func (q *readQueue) oldest() *read {
	done := q.done.Load()
	if done == q.pushed.Load() {
		return nil
	}
	return &q.slots[done&q.mask]
}

// op is the operation of an outstanding read or atomic, counted from 1.
func (q *readQueue) op(number uint64) hw.Op { return q.slots[(number-1)&q.mask].op }

// retire counts the oldest read as done.
func (q *readQueue) retire() { q.done.Add(1) }

// response is the response that this end owes the peer for a request, or a termination.
type response struct {
	kind   responseKind
	stag   uint32
	size   uint32
	srcKey uint32
	to     uint64
	src    uint64
	msn    uint32
	value  uint64  // an atomic's old value
	end    *ending // a termination's
}

type responseKind uint8

const (
	readResponse responseKind = iota
	atomicResponse
	termination // the end of the connection; nothing follows it
)

// responseQueue holds the responses in order: the receiver pushes, the sender retires.
type responseQueue struct {
	fifo[response]
	limit uint64
}

func (q *responseQueue) init(readsIn int) {
	q.fifo.init(readsIn + 2)
	q.limit = uint64(max(readsIn, 1)) // a ready-to-receive may be a read
}

// full reports whether as many of the peer's requests as agreed have no response in the outbox yet. A
// request does not count longer: the peer may have its response, and ask again, before this end
// knows that it was written. A termination has a place of its own.
func (q *responseQueue) full() bool { return q.outstanding() >= q.limit }
