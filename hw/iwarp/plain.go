package iwarp

import (
	"godat/hw"
	"godat/hw/internal/soft"
	"godat/internal/yield"
)

// Plain requests in runs (hw.Runner): they take slots of the send queue as
// those of PostSend do, without an array in between, and the run is published as a whole.

var _ hw.Runner = (*queuePair)(nil)

// PostRun implements [hw.Runner].
func (q *queuePair) PostRun(op hw.Op, flags hw.WRFlags, id uint64, sge *hw.SGE, stride uintptr, n int, rkey uint32, addr uint64) (done int) {
	c := q.conn
	if c == nil || !c.up.Load() {
		return 0
	}
	if c.ops.Has(op) && q.Cfg.SendSegments > 0 {
		for done < n && c.send.sq.addPlain(op, flags&^hw.WRMore, id+uint64(done), soft.SegmentAt(sge, stride, done), rkey, addr) {
			done++
		}
	}
	if done < n || flags&hw.WRMore == 0 {
		c.send.sq.Publish()
		yield.Point()
		c.kick(byPoster)
	}
	return done
}

// RecvRun implements [hw.Runner].
func (q *queuePair) RecvRun(id uint64, sge *hw.SGE, stride uintptr, n int) int {
	c := q.conn
	if c == nil || q.srq != nil || q.Cfg.RecvSegments < 1 {
		return 0
	}
	n = c.recv.place.rq.pushRun(id, sge, stride, n)
	c.flushLate()
	return n
}

// Kick implements [hw.Runner]. No send waits for a receive.
func (q *queuePair) Kick() {}
