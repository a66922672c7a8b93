package loop

import (
	"unsafe"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/internal/release"
	"godat/internal/yield"
)

// The direct path executes one plain request in the call that posts it. Most requests
// are plain, so this file decides the latency (see BenchmarkPair). Whatever it leaves
// alone, PostSend and PostRecv do.

var _ hw.Direct = (*queuePair)(nil)

// PostOne implements [hw.Direct]. See PostSend for why the order is kept.
func (q *queuePair) PostOne(op hw.Op, flags hw.WRFlags, id uint64, sge *hw.SGE, rkey uint32, addr uint64) bool {
	p := q.out.Load()
	if p == nil || sge.Len-1 >= p.budget {
		return false
	}
	w, ok := p.token.TryTake()
	if !ok {
		return false
	}
	ok = (p.attention.Load() == 0 || p.arrive()) && p.exec.one(op, flags, id, sge, rkey, addr, 0)
	yield.Point()
	if !p.token.ReleaseIf(w) {
		p.grant()
		p.run()
	}
	return ok
}

// BeginRun implements [hw.Direct]. A run is one hold of the pipe.
func (q *queuePair) BeginRun() bool {
	p := q.out.Load()
	if p == nil {
		return false
	}
	if _, ok := p.token.TryTake(); !ok {
		return false
	}
	p.grant()
	if p.attention.Load() == 0 || p.arrive() {
		return true
	}
	if !p.token.Release() {
		p.run()
	}
	return false
}

// RunOne implements [hw.Direct]. The budget is that of a post of an array.
func (q *queuePair) RunOne(op hw.Op, flags hw.WRFlags, id uint64, sge *hw.SGE, rkey uint32, addr uint64) bool {
	p := q.out.Load()
	x := &p.exec
	n := int64(sge.Len) // sge is another request's once this one has completed
	if p.ops == 0 || uint64(n)-1 >= uint64(x.bytes) || !x.one(op, flags, id, sge, rkey, addr, hw.WCMore) {
		return false
	}
	p.ops--
	x.bytes -= n
	return true
}

// RunSends implements [hw.Direct].
func (q *queuePair) RunSends(flags hw.WRFlags, id uint64, sge *hw.SGE, stride uintptr, n int) (done int) {
	p := q.out.Load()
	x := &p.exec
	for n = min(n, int(p.ops)); done < n; done++ {
		s := soft.SegmentAt(sge, stride, done)
		k := int64(s.Len) // as in RunOne
		if uint64(k)-1 >= uint64(x.bytes) || !x.one(hw.OpSend, flags, id+uint64(done), s, 0, 0, hw.WCMore) {
			break
		}
		x.bytes -= k
	}
	p.ops -= int32(done)
	return done
}

// EndRun implements [hw.Direct].
func (q *queuePair) EndRun() {
	p := q.out.Load()
	p.exec.dst.sink.Flush()
	p.exec.src.sink.Flush()
	yield.Point()
	if !p.token.Release() {
		p.grant()
		p.run()
	}
}

// RecvOne implements [hw.Direct].
func (q *queuePair) RecvOne(id uint64, sge *hw.SGE) bool {
	rq := q.rq
	if rq == nil || q.segments < 1 {
		return false
	}
	tail := rq.tail.Load()
	if tail == rq.limit.Load() {
		return false
	}
	slot := &rq.slots[tail&rq.mask]
	slot.id, slot.sgl, slot.n = id, sge, 1
	release.Uint64(&rq.tail, tail+1)
	yield.Point()
	return true
}

// RecvRun implements [hw.Direct].
func (q *queuePair) RecvRun(id uint64, sge *hw.SGE, stride uintptr, n int) int {
	rq := q.rq
	if rq == nil || q.segments < 1 {
		return 0
	}
	tail := rq.tail.Load()
	n = int(min(uint64(n), rq.limit.Load()-tail))
	for i := range n {
		slot := &rq.slots[(tail+uint64(i))&rq.mask]
		slot.id, slot.sgl, slot.n = id+uint64(i), soft.SegmentAt(sge, stride, i), 1
	}
	release.Uint64(&rq.tail, tail+uint64(n))
	yield.Point()
	return n
}

// Kick implements [hw.Direct]. The owner's locked instruction after RecvOne publishes
// the tail before attention is loaded here. See PostRecv for why no send is left waiting
// then.
func (q *queuePair) Kick() {
	if p := q.in.Load(); p != nil && p.attention.Load()&^absent != 0 {
		p.kick()
	}
}

// one executes a plain request, which is not empty and within the budget, and completes
// it, or does nothing and returns false. The holder has no completions gathered. The
// completions have the flag more, which is WCMore or 0. A send is executed here, since a
// call costs as much as a tenth of it.
func (x *executor) one(op hw.Op, flags hw.WRFlags, id uint64, sge *hw.SGE, rkey uint32, addr uint64, more hw.WCFlags) bool {
	n := sge.Len
	if op == hw.OpSend {
		t := &x.dst
		if !t.available() {
			return false
		}
		rr := t.next()
		d := rr.sgl
		if rr.n != 1 || n > d.Len {
			return false
		}
		from := x.src.Again(sge.Addr, n, sge.LKey, hw.LocalRead)
		if from == nil {
			if from = x.src.Reach(sge.Addr, n, sge.LKey, hw.LocalRead); from == nil {
				return false
			}
		}
		to := t.Again(d.Addr, d.Len, d.LKey, hw.LocalWrite)
		if to == nil {
			if to = t.Reach(d.Addr, d.Len, d.LKey, hw.LocalWrite); to == nil {
				return false
			}
		}
		copyBytes(to, from, n)
		receive, marks := rr.id, more
		if t.head++; t.head >= t.freeAt {
			x.giveBack()
		}
		if flags&hw.WRSolicited != 0 {
			marks |= hw.WCSolicited
		}
		t.sink.CompleteOne(receive, hw.OpRecv, n, marks)
	} else if !x.rdma(op, sge, rkey, addr) {
		return false
	}
	if flags&hw.WRSignaled != 0 {
		x.src.sink.CompleteOne(id, op, n, more)
	}
	return true
}

// rdma moves the bytes of a plain write or read, or does nothing and returns false.
func (x *executor) rdma(op hw.Op, sge *hw.SGE, rkey uint32, addr uint64) bool {
	n := sge.Len
	switch op {
	case hw.OpWrite:
		from := x.src.Reach(sge.Addr, n, sge.LKey, hw.LocalRead)
		to := x.dst.Reach(addr, n, rkey, hw.RemoteWrite)
		if from == nil || to == nil {
			return false
		}
		copyBytes(to, from, n)
	case hw.OpRead:
		from := x.dst.Reach(addr, n, rkey, hw.RemoteRead)
		to := x.src.Reach(sge.Addr, n, sge.LKey, hw.LocalWrite)
		if from == nil || to == nil || x.canRead != hw.StatusSuccess {
			return false
		}
		copyBytes(to, from, n)
	default:
		return false
	}
	return true
}

func copyBytes(to, from unsafe.Pointer, n uint32) {
	yield.Point()
	copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
}
