//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import "godat/hw"

// Facts are told with mu released, since the owner may call the queue pair from
// inside them, one at a time, in the order in which they were decided: whoever
// decides one while another is being told leaves it to that teller. A queue does not
// end while a fact is on its way, so that none comes after the end.

// fact is something to be told to the owner.
type fact func(hw.Facts)

// tell tells a fact; mu is held, and released.
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
		C.gd_hold(q.c, 0) // receives that waited for Established
		C.gd_tell(q.c, -1)
	}
	q.telling = false
	q.mu.Unlock()
}

// established tells that the connection is up.
func (q *queuePair) established(life uint64, info hw.ConnInfo) bool {
	q.mu.Lock()
	if q.life != life || q.at() != phaseConnecting {
		q.mu.Unlock()
		return false
	}
	q.become(phaseUp)
	q.tell(func(f hw.Facts) { f.Established(info) })
	return true
}

// upEarly is called when the owner acts on a connection that nobody has told of. On
// the passive side a receive that succeeded told it, before the connection manager
// did; then Established is told now. It reports whether that is so.
func (q *queuePair) upEarly() bool {
	q.mu.Lock()
	c, life := q.conn, q.life
	early := q.at() == phaseConnecting && c != nil && c.passive
	q.mu.Unlock()
	if early {
		q.established(life, c.info(event{}))
	}
	return early || q.at() != phaseConnecting
}

// refused tells that an attempt came to nothing.
func (q *queuePair) refused(life uint64, why hw.Reason, private []byte, cause *hw.Cause) {
	q.mu.Lock()
	if q.life != life || q.at() != phaseConnecting {
		q.mu.Unlock()
		return
	}
	q.become(phaseDown)
	C.gd_kill(q.c)
	q.tell(func(f hw.Facts) { f.Refused(why, private, cause) })
}

// down tells that the connection is over; mu is held, and released. The completion of
// a request that failed says more than what followed from it.
func (q *queuePair) down(why hw.Reason, cause *hw.Cause) {
	if why != hw.ReasonBroken {
		cause = nil
	} else if f := q.failure(); f != nil {
		cause = f
	}
	q.become(phaseDown)
	q.tell(func(f hw.Facts) { f.Down(why, cause) })
}

// lost tells that a connection, or an attempt by the peer at one, is over.
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

// hungUp is called when the peer has taken the connection down. What it has not told
// is asked, if it may not have been able to.
func (q *queuePair) hungUp(life uint64) {
	q.mu.Lock()
	asked := q.life == life && q.at() == phaseUp && q.conn.reason() == hw.ReasonBroken && q.askPeer()
	q.mu.Unlock()
	if asked {
		q.dev.setAlarm(alarmAsked, q, life)
	} else {
		q.answered(life)
	}
}

// answered tells that the connection is over, and what is known of the reason.
func (q *queuePair) answered(life uint64) {
	q.mu.Lock()
	c := q.conn
	q.mu.Unlock()
	if c != nil {
		q.lost(life, c.reason(), &hw.Cause{
			Layer: hw.LayerVerbs, Code: C.GC_EVENT_DISCONNECTED, Text: "RDMA_CM_EVENT_DISCONNECTED, and not in order", Found: hw.SidePeer,
		})
	}
}

// failed ends a connection on which a request failed, or of which the device said
// so. The peer hears of no order.
func (q *queuePair) failed(life uint64, cause *hw.Cause) {
	q.mu.Lock()
	if q.life != life || q.closed || q.at() == phaseNew || q.at() == phaseConnecting {
		q.mu.Unlock()
		return
	}
	q.mu.Unlock()
	q.lost(life, hw.ReasonBroken, cause)
}

// die takes the queue pair out of service and tells the peer, or answers it, with
// mu held.
func (q *queuePair) die() {
	C.gd_kill(q.c)
	if q.conn != nil {
		q.conn.hangUp()
	}
	q.dev.watchFlush(q, q.life)
}

// drained tells that the send queue has run dry.
func (q *queuePair) drained(life uint64) {
	q.mu.Lock()
	if q.life != life || q.at() != phaseUp {
		q.mu.Unlock()
		return
	}
	q.down(hw.ReasonDrained, nil)
}

// Drain implements [hw.QP]. The peer is told of the orderly end behind the requests
// posted so far.
func (q *queuePair) Drain() {
	if q.at() == phaseConnecting {
		q.upEarly()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.at() != phaseUp {
		return // its end is told already, or is being told
	}
	q.tellOnce()
	var posted C.uint32_t
	C.gd_drain(q.c, &posted)
	q.sendPos = uint32(posted)
}

// tellOnce tells the peer, unless that was done, with mu held. It reports whether
// there is an answer to wait for.
func (q *queuePair) tellOnce() bool {
	c := q.conn
	if c == nil {
		return false
	}
	c.mu.Lock()
	from, to, done := c.place, c.peer, c.told
	c.told = true
	c.mu.Unlock()
	return !done && q.tellPeer(from, to)
}

// Break implements [hw.QP]. An orderly one first tells the peer so, and waits for
// that as long as alarms say: not the caller, and the queues end after it.
func (q *queuePair) Break(orderly bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.at()
	if was == phaseBroken || q.closed {
		return
	}
	q.become(phaseBroken)
	switch {
	case was == phaseUp && orderly:
		kind := alarmTold
		if C.gd_idle(q.c) == 0 {
			kind = alarmToldBusy
		}
		if q.tellOnce() {
			q.leaving = true
			q.dev.setAlarm(kind, q, q.life)
			return
		}
		q.leave()
	default:
		q.leave()
	}
}

// toldPeer goes on with an orderly Break when the peer knows, or doesn't answer.
func (q *queuePair) toldPeer(life uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.life == life && q.leaving {
		q.leave()
	}
}

// unheard goes on with an orderly Break when the peer has not been told, which a send
// that waits for a receive may prevent. The peer may ask, as long as the queue pair
// lives: until it takes the connection down, too, or doesn't.
func (q *queuePair) unheard(life uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.life == life && q.leaving {
		q.conn.leaving()
		q.dev.setAlarm(alarmTold, q, life)
	}
}

// leave takes the queue pair out of service and lets its queues end, with mu held.
func (q *queuePair) leave() {
	q.leaving = false
	q.die()
	C.gd_over(q.c)
}
