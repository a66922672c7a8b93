package soft

import (
	"math/bits"
	"sync/atomic"

	"godat/hw"
)

// CacheLine keeps apart what different processors write.
const CacheLine = 64

// RingLen is the power of two that holds n, at least 1.
func RingLen(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

// CheckQP holds a queue pair's configuration against the device's limits.
func (d *Device) CheckQP(op string, cfg *hw.QPConfig) error {
	a := &d.cfg.Attr
	bad := func(why string) error { return d.errorf(op, hw.InvalidParameter, hw.Arg1, "%s", why) }
	outside := func(n, limit int) bool { return n < 0 || n > limit }
	switch {
	case cfg.SendSink == nil || cfg.RecvSink == nil || cfg.Facts == nil:
		return bad("a sink or the facts are missing")
	case cfg.SendCQ != nil || cfg.RecvCQ != nil:
		return bad("the device has no completion queues")
	case outside(cfg.SendDepth, a.MaxDepth) || outside(cfg.RecvDepth, a.MaxDepth):
		return bad("depth")
	case outside(cfg.SendSegments, a.MaxSendSegments) || outside(cfg.RecvSegments, a.MaxRecvSegments):
		return bad("segments")
	case outside(cfg.ReadsIn, a.MaxReadsIn) || outside(cfg.ReadsOut, a.MaxReadsOut):
		return bad("reads")
	case cfg.NotReady < 0:
		return bad("negative NotReady")
	}
	return nil
}

// SendQueue is a ring of requests with one producer, the owner of the queue pair,
// and one consumer, whose place is its own. Positions only grow. The producer
// publishes once per call; the consumer gives slots back before it hands out a
// completion that could make the owner post again. Segment lists are the owner's
// until completion, so a slot holds a slice of them.
type SendQueue struct {
	Slots []hw.SendWR
	Mask  uint64
	Depth uint64
	binds []hw.Bind // of the slots, from the first bind on; the producer's
	_     [CacheLine]byte
	Tail  atomic.Uint64
	_     [CacheLine]byte
	Freed atomic.Uint64 // slots given back
	_     [CacheLine]byte
}

// Init makes the queue one of that depth.
func (q *SendQueue) Init(depth int) {
	n := RingLen(depth)
	q.Slots, q.Mask, q.Depth = make([]hw.SendWR, n), uint64(n-1), uint64(depth)
}

// Push appends as many as there is room for and says how many.
func (q *SendQueue) Push(wrs []hw.SendWR) int {
	tail := q.Tail.Load()
	n := min(uint64(len(wrs)), q.Freed.Load()+q.Depth-tail)
	for i := range wrs[:n] {
		at := (tail + uint64(i)) & q.Mask
		s := &q.Slots[at]
		*s = wrs[i]
		if s.Op == hw.OpBind {
			s.Bind = q.keep(at, s.Bind)
		}
	}
	if n > 0 {
		q.Tail.Store(tail + n)
	}
	return int(n)
}

// keep is a copy of a slot's bind, which the owner may use again, as the array.
func (q *SendQueue) keep(at uint64, b *hw.Bind) *hw.Bind {
	if q.binds == nil { // most queues never have one
		q.binds = make([]hw.Bind, len(q.Slots))
	}
	q.binds[at] = *b
	return &q.binds[at]
}
