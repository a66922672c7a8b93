package iwarp

import (
	"godat/hw"
	"godat/hw/internal/soft"
	"godat/internal/yield"
)

// Plain requests, one at a time or in runs (hw.Direct): they take slots of the send queue as
// those of PostSend do, without an array in between, and the run is published as a whole.

var _ hw.Direct = (*queuePair)(nil)

// PostOne implements [hw.Direct].
func (q *queuePair) PostOne(op hw.Op, flags hw.WRFlags, id uint64, sge *hw.SGE, rkey uint32, addr uint64) bool {
	if !q.BeginRun() || !q.RunOne(op, flags, id, sge, rkey, addr) {
		return false
	}
	q.EndRun()
	return true
}

// BeginRun implements [hw.Direct].
func (q *queuePair) BeginRun() bool { return q.conn != nil && q.conn.up.Load() }

// RunOne implements [hw.Direct].
func (q *queuePair) RunOne(op hw.Op, flags hw.WRFlags, id uint64, sge *hw.SGE, rkey uint32, addr uint64) bool {
	return q.takesPlain(op) && q.conn.send.sq.addPlain(op, flags, id, sge, rkey, addr)
}

// takesPlain reports whether the connection may have requests of an operation, with a segment.
func (q *queuePair) takesPlain(op hw.Op) bool {
	return q.conn.agreed.ops.Has(op) && q.cfg.SendSegments > 0
}

// RunSends implements [hw.Direct].
func (q *queuePair) RunSends(flags hw.WRFlags, id uint64, sge *hw.SGE, stride uintptr, n int) (done int) {
	if !q.takesPlain(hw.OpSend) {
		return 0
	}
	sq := q.conn.send.sq
	for done < n && sq.addPlain(hw.OpSend, flags, id+uint64(done), soft.SegmentAt(sge, stride, done), 0, 0) {
		done++
	}
	return done
}

// EndRun implements [hw.Direct].
func (q *queuePair) EndRun() {
	q.conn.send.sq.Publish()
	yield.Point()
	q.conn.kick(byPoster)
}

// RecvOne implements [hw.Direct].
func (q *queuePair) RecvOne(id uint64, sge *hw.SGE) bool { return q.RecvRun(id, sge, 0, 1) == 1 }

// RecvRun implements [hw.Direct].
func (q *queuePair) RecvRun(id uint64, sge *hw.SGE, stride uintptr, n int) int {
	c := q.conn
	if c == nil || q.srq != nil || q.cfg.RecvSegments < 1 {
		return 0
	}
	n = c.recv.place.rq.pushRun(id, sge, stride, n)
	c.flushLate()
	return n
}

// Kick implements [hw.Direct]. No send waits for a receive.
func (q *queuePair) Kick() {}
