package loop

import (
	"unsafe"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/internal/release"
	"godat/internal/yield"
)

// A plain request is executed in the call that posts it. Most requests are plain, so this
// file decides the latency (see BenchmarkPair). Whatever it leaves alone, PostSend and
// PostRecv do.

var _ hw.Runner = (*queuePair)(nil)

// PostRun implements [hw.Runner]. See PostSend for why the order is kept. A run of one request
// hands its completions on as they come; a longer run is one hold of the pipe, with the
// budget of a post of an array.
func (q *queuePair) PostRun(op hw.Op, flags hw.WRFlags, id uint64, sge *hw.SGE, stride uintptr, n int, rkey uint32, addr uint64) (done int) {
	p := q.out.Load()
	if p == nil {
		return 0
	}
	if n == 1 && !q.running && flags&hw.WRMore == 0 {
		return p.one(op, flags, id, sge, rkey, addr)
	}
	if !q.running && !p.beginRun() {
		return 0
	}
	x := &p.exec
	for most := min(n, int(p.ops)); done < most; done++ {
		s := soft.SegmentAt(sge, stride, done)
		k := int64(s.Len) // the segment is another request's once this one has completed
		if uint64(k)-1 >= uint64(x.bytes) || !x.one(op, flags, id+uint64(done), s, rkey, addr, hw.WCMore) {
			break
		}
		x.bytes -= k
	}
	p.ops -= int32(done)
	if q.running = flags&hw.WRMore != 0 && done == n; !q.running {
		p.endRun()
	}
	return done
}

// one posts a run of one request, and returns how many it has posted.
func (p *pipe) one(op hw.Op, flags hw.WRFlags, id uint64, sge *hw.SGE, rkey uint32, addr uint64) (done int) {
	if sge.Len-1 >= p.budget {
		return 0
	}
	w, ok := p.token.TryTake()
	if !ok {
		return 0
	}
	if (p.attention.Load() == 0 || p.arrive()) && p.exec.one(op, flags, id, sge, rkey, addr, 0) {
		done = 1
	}
	yield.Point()
	if !p.token.ReleaseIf(w) {
		p.goOn()
	}
	return done
}

// beginRun takes the pipe for a run, if nobody has it and nothing is to be looked at.
func (p *pipe) beginRun() bool {
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

// endRun hands on the completions of a run, and releases the pipe.
func (p *pipe) endRun() {
	p.exec.dst.sink.Flush()
	p.exec.src.sink.Flush()
	yield.Point()
	if !p.token.Release() {
		p.goOn()
	}
}

// RecvRun implements [hw.Runner].
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

// Kick implements [hw.Runner]. The owner's locked instruction after RecvRun publishes
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
