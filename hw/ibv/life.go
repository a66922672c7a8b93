//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import "godat/hw"

// To tell a fact is to call the method of the owner's hw.Facts. A goroutine tells with
// mu released, since the owner may call the queue pair from inside the method. Facts
// are told one at a time, in the order in which they were decided: a goroutine that
// decides one while another goroutine is telling leaves it to that goroutine. A queue
// does not end while a fact waits or is being told, so that no fact comes after OpEnd.

// fact calls one method of the owner's hw.Facts.
type fact func(hw.Facts)

// tell tells a fact, or leaves it to the goroutine that is telling. The caller holds mu;
// tell releases it.
func (q *queuePair) tell(f fact) {
	C.gd_tell(q.c, 1)
	q.untold = append(q.untold, f)
	if q.telling {
		q.mu.Unlock()
		return
	}
	q.telling = true
	for len(q.untold) > 0 {
		f := q.untold[0]
		q.untold = q.untold[1:]
		q.mu.Unlock()
		f(q.cfg.Facts)
		q.mu.Lock()
		C.gd_hold(q.c, false) // releases the receives that waited for Established
		C.gd_tell(q.c, -1)
	}
	q.telling = false
	q.mu.Unlock()
}

// established tells that the connection is up, and reports whether it still was
// connecting.
func (q *queuePair) established(life uint64, info hw.ConnInfo) bool {
	if !q.lockAt(life, phaseConnecting) {
		return false
	}
	q.become(phaseUp)
	if q.dev.siw {
		q.dev.watcher.setAlarm(alarmNudge, q, life)
	}
	q.tell(func(f hw.Facts) { f.Established(info) })
	return true
}

// upEarly is called when the owner posts or drains before Established was told. On the
// passive side a receive may succeed before the connection manager's event arrives, and
// show the owner that the connection is up; then upEarly tells Established now. It
// reports whether the queue pair is past connecting.
func (q *queuePair) upEarly() bool {
	q.mu.Lock()
	c, life := q.conn, q.life
	early := q.at() == phaseConnecting && c != nil && c.passive
	q.mu.Unlock()
	if early {
		q.established(life, c.info())
	}
	return early || q.at() != phaseConnecting
}

// refused tells that an attempt to connect failed.
func (q *queuePair) refused(life uint64, why hw.Reason, private []byte, cause *hw.Cause) {
	if !q.lockAt(life, phaseConnecting) {
		return
	}
	q.become(phaseDown)
	C.gd_kill(q.c)
	q.tell(func(f hw.Facts) { f.Refused(why, private, cause) })
}

// down tells that the connection is over. The caller holds mu; down releases it. For a
// broken connection a request that failed names the cause better than the event that
// followed from the failure.
func (q *queuePair) down(why hw.Reason, cause *hw.Cause) {
	if why != hw.ReasonBroken {
		cause = nil
	} else if f := q.failure(); f != nil {
		cause = f
	}
	q.become(phaseDown)
	q.tell(func(f hw.Facts) { f.Down(why, cause) })
}

// lost ends a connection, or an attempt to connect, that the peer, the device or the
// connection manager ended, and tells the owner unless the owner broke it first.
func (q *queuePair) lost(life uint64, why hw.Reason, cause *hw.Cause) {
	q.mu.Lock()
	switch {
	case q.life != life || q.closed:
		q.mu.Unlock()
	case q.at() == phaseConnecting:
		q.mu.Unlock()
		q.refused(life, hw.ReasonUnreachable, nil, cause)
	case q.leaving:
		q.leave()
		q.mu.Unlock()
	default:
		up := q.at() == phaseUp
		q.die()
		if up {
			q.down(why, cause)
			return
		}
		q.mu.Unlock()
	}
}

// hungUp is called when the peer has taken the connection down. When the peer's farewell
// is missing, and may be stuck, hungUp first fetches it.
func (q *queuePair) hungUp(life uint64) {
	if q.lockAt(life, phaseUp) {
		fetching := q.conn.reason() == hw.ReasonBroken && q.up.reads_out > 0 && q.conn.fetchFarewell(q.c)
		q.mu.Unlock()
		if fetching {
			q.dev.watcher.setAlarm(alarmFetched, q, life)
			return
		}
	}
	q.peerLeft(life)
}

// peerLeft tells that the peer took the connection down: in order if the peer's farewell
// has come by now.
func (q *queuePair) peerLeft(life uint64) {
	q.mu.Lock()
	c := q.conn
	q.mu.Unlock()
	if c != nil {
		q.lost(life, c.reason(), &hw.Cause{
			Layer: hw.LayerVerbs, Code: C.GC_EVENT_DISCONNECTED, Text: "RDMA_CM_EVENT_DISCONNECTED, and not in order", Found: hw.SidePeer,
		})
	}
}

// failed ends a connection on which a request failed, or which the device reported as
// failed. The peer gets no farewell.
func (q *queuePair) failed(life uint64, cause *hw.Cause) {
	q.mu.Lock()
	if q.life != life || q.closed || q.at() == phaseNew || q.at() == phaseConnecting {
		q.mu.Unlock()
		return
	}
	why := hw.ReasonBroken
	if q.conn == nil && q.own != nil && q.own.heard() { // the request came behind the peer's end
		why = hw.ReasonPeer
	}
	q.mu.Unlock()
	q.lost(life, why, cause)
}

// die takes the queue pair out of service and disconnects, which also answers a
// disconnect by the peer, with mu held.
func (q *queuePair) die() {
	C.gd_kill(q.c)
	if q.conn != nil {
		q.conn.hangUp()
	}
	q.dev.watcher.setFlushAlarms(q, q.life)
}

// drained tells, after Drain, that every request of the send queue has completed.
func (q *queuePair) drained(life uint64) {
	if q.lockAt(life, phaseUp) {
		q.down(hw.ReasonDrained, nil)
	}
}

// Drain implements [hw.QP]. It sends the farewell behind the requests posted so far.
func (q *queuePair) Drain() {
	if q.at() == phaseConnecting {
		q.upEarly()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.at() != phaseUp {
		return // Refused or Down was called, or is about to be
	}
	if q.conn != nil || bool(C.gd_look(q.c).reaches) { // else it would wait for a peer that has not paired
		q.sendFarewell()
	}
	var posted C.uint32_t
	C.gd_drain(q.c, &posted)
	q.sendPos = uint32(posted)
}

// Break implements [hw.QP]. An orderly Break first sends the farewell; the queues end
// when that has completed, or when the alarm goes off. The caller does not wait.
func (q *queuePair) Break(orderly bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.at()
	if was == phaseBroken || q.closed {
		return
	}
	q.become(phaseBroken)
	if orderly && (was == phaseUp || was == phaseDown && q.conn == nil) { // Drain may have left a pair's out
		kind := alarmFarewell
		if !C.gd_look(q.c).idle {
			kind = alarmFarewellStuck
		}
		if next, sent := q.sendFarewell(); sent {
			q.sendPos, q.leaving = next, true
			q.dev.watcher.setAlarm(kind, q, q.life)
			return
		}
	}
	q.leave()
}

// farewellOver goes on with an orderly Break when the farewell has completed, or when its
// alarm goes off.
func (q *queuePair) farewellOver(life uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.life == life && q.leaving {
		q.leave()
	}
}

// farewellStuck goes on with an orderly Break when the farewell has not completed, perhaps
// because it is stuck behind a send that waits for a receive. It disconnects and keeps
// the queue pair in service, so that the peer can fetch the farewell from this side,
// until the peer disconnects too, or until the alarm goes off. The peer of a pair hears of no
// disconnect, so nothing makes it fetch.
func (q *queuePair) farewellStuck(life uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.life != life || !q.leaving:
	case q.conn == nil:
		q.leave()
	default:
		q.conn.offerFarewell()
		q.dev.watcher.setAlarm(alarmFarewell, q, life)
	}
}

// leave takes the queue pair out of service and lets its queues end, with mu held.
func (q *queuePair) leave() {
	q.leaving = false
	q.die()
	C.gd_over(q.c)
}

// noticed handles the notices that the C half left about a queue pair, while it had the device's
// queue pair of that number.
func (w *watcher) noticed(q *queuePair, number C.uint32_t, bits uint32) {
	life := w.lifeOf(q, number)
	if life == noLife {
		return
	}
	if bits&C.GD_NOTICE_FAREWELL != 0 {
		q.farewellOver(life)
	}
	if bits&C.GD_NOTICE_FETCHED != 0 {
		q.peerLeft(life)
	}
	if bits&C.GD_NOTICE_FAILED != 0 {
		q.failed(life, localCause("ibv_post_send failed when it had queued the requests", errDevice))
	}
	if bits&C.GD_NOTICE_DRAINED != 0 {
		q.drained(life)
	}
	if bits&C.GD_NOTICE_FLUSHED != 0 {
		w.setAlarm(alarmFlushed, q, life) // an event of the connection manager should name the cause
	}
}

// noLife is the number of no life: NewQP begins the first with 1.
const noLife = 0

// lifeOf is the present life of a queue pair, if that has the device's queue pair of that number
// in it. The watcher may handle what it has heard of an earlier life when Reset has begun the next.
func (w *watcher) lifeOf(q *queuePair, number C.uint32_t) uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.rings.qp_num != number {
		return noLife
	}
	return q.life
}

func (q *queuePair) currentLife() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.life
}

// heard tells the connection manager (rdma_notify) that data arrived before its event
// that the connection is established.
func (q *queuePair) heard() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.conn != nil && q.at() == phaseConnecting {
		q.conn.with(func(id *C.struct_gc_id) { C.gd_cm_notify(id) })
	}
}
