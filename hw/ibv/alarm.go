//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import "time"

// alarmKind says what an alarm waits for. Each kind has one delay, so its alarms go off
// in the order in which they were set.
type alarmKind int

const (
	alarmFarewell      alarmKind = iota // the farewell has not completed, or the peer does not disconnect
	alarmFarewellStuck                  // the farewell has not completed, behind requests that may be stuck
	alarmFetched                        // the read of the peer's farewell has not completed
	alarmFlushed                        // a request was flushed, and no event has named a cause
	alarmForce                          // the device has not flushed all requests
	alarmShared                         // no event says that the device takes no more shared receives
	alarmNudge                          // soft-iWARP may have missed what the initiator sent first
	alarmPair                           // a pair's peer may be gone
	alarmKinds
)

var alarmDelays = [alarmKinds]time.Duration{
	alarmFarewell:      2 * time.Second,
	alarmFarewellStuck: 500 * time.Millisecond,
	alarmFetched:       500 * time.Millisecond,
	alarmFlushed:       time.Second,
	alarmForce:         5 * time.Second,
	alarmShared:        200 * time.Millisecond,
	alarmNudge:         250 * time.Millisecond,
	alarmPair:          time.Second, // or the parameter keepalive, if that is less
}

// alarm belongs to one life of a queue pair.
type alarm struct {
	at   time.Time
	qp   *queuePair
	life uint64
}

// setAlarm sets an alarm of one life of a queue pair. Any goroutine may call it.
func (w *watcher) setAlarm(kind alarmKind, q *queuePair, life uint64) {
	w.mu.Lock()
	w.alarms[kind] = append(w.alarms[kind], alarm{time.Now().Add(w.delay(kind)), q, life})
	w.mu.Unlock()
	w.wake()
}

func (w *watcher) delay(kind alarmKind) time.Duration {
	delay := alarmDelays[kind]
	if every := w.dev.params.keepalive; kind == alarmPair && every > 0 {
		delay = min(delay, every)
	}
	return delay
}

// setFlushAlarms sets the alarms that end a dead queue pair's queues when the device
// does not.
func (w *watcher) setFlushAlarms(q *queuePair, life uint64) {
	if q.parts.srq != nil {
		w.setAlarm(alarmShared, q, life)
	}
	if !w.dev.siw {
		w.setAlarm(alarmForce, q, life)
	}
}

// untilAlarm is how many milliseconds there are until the next alarm, or -1 when none
// is set, with mu held.
func (w *watcher) untilAlarm() int {
	next := -1
	for _, as := range w.alarms {
		if len(as) > 0 {
			ms := max(0, int(time.Until(as[0].at)/time.Millisecond)+1)
			if next < 0 || ms < next {
				next = ms
			}
		}
	}
	return next
}

// runAlarms handles the alarms that are due.
func (w *watcher) runAlarms() {
	w.own.Check()
	now := time.Now()
	for kind := range alarmKinds {
		for {
			a, due := w.takeAlarm(kind, now)
			if !due {
				break
			}
			a.ring(kind)
		}
	}
}

// takeAlarm removes the first alarm of a kind, if it is due.
func (w *watcher) takeAlarm(kind alarmKind, now time.Time) (a alarm, due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	as := w.alarms[kind]
	if len(as) == 0 || as[0].at.After(now) {
		return alarm{}, false
	}
	w.alarms[kind] = as[1:]
	if len(as) == 1 {
		w.alarms[kind] = nil
	}
	return as[0], true
}

// ring does what an alarm is for.
func (a alarm) ring(kind alarmKind) {
	q, life := a.qp, a.life
	switch kind {
	case alarmFarewell:
		q.farewellOver(life)
	case alarmFarewellStuck:
		q.farewellStuck(life)
	case alarmFetched:
		q.peerLeft(life)
	case alarmNudge:
		a.nudge()
	case alarmPair:
		q.lookForPeer(life)
	case alarmFlushed:
		if q.lockAt(life, phaseUp) {
			q.mu.Unlock()
			q.failed(life, localCause("requests were flushed, and no event named the cause", errDevice))
		}
	case alarmForce, alarmShared, alarmKinds:
		q.force(kind, life)
	}
}

// force makes the C half stop waiting for the device: for the event that the device
// takes no more shared receives (alarmShared), or for all that is outstanding.
func (q *queuePair) force(kind alarmKind, life uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.life != life || q.closed:
	case kind == alarmShared:
		C.gd_last_wqe(q.c)
	default:
		C.gd_force(q.c)
	}
}
