//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import "godat/hw"

// No connection manager tells a pair that its peer is gone. So the watcher looks at each pair
// again and again: whether the peer's farewell has come, and, once in the time keepalive,
// whether the peer still answers. The probe is a write of no bytes, which fails if it does not.

// lookForPeer handles an alarm of a life of a pair.
func (q *queuePair) lookForPeer(life uint64) {
	q.mu.Lock()
	if q.life != life || q.at() != phaseUp || q.own == nil {
		q.mu.Unlock()
		return
	}
	if q.own.filled() {
		q.mu.Unlock()
		q.lost(life, hw.ReasonPeer, nil)
		return
	}
	w := &q.dev.watcher
	q.own.looks++
	if every := q.own.probes; every > 0 && int64(q.own.looks)*int64(w.delay(alarmPair)) >= int64(every) {
		q.own.looks = 0
		C.gd_probe(q.c)
	}
	w.setAlarm(alarmPair, q, life)
	q.mu.Unlock()
}

// filled reports whether the peer has written its farewell.
func (o *ownPath) filled() bool { return o != nil && o.place.filled() }

// sendFarewell posts the farewell on the pair's queue pair, unless an earlier call did.
func (o *ownPath) sendFarewell(q *C.struct_gd_qp) (next uint32, sent bool) {
	if o == nil || o.said {
		return 0, false
	}
	o.said = true
	return o.place.sendFrom(q, o.peer)
}

func (o *ownPath) release() {
	if o != nil {
		o.place.release()
	}
}
