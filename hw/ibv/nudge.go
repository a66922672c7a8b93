//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

// nudges is how often the initiator of a connection on soft-iWARP nudges its peer.
//
// Linux's siw, as the acceptor, sends its answer before it takes over the socket
// (siw_accept). It does not look at what the initiator has sent in between until more
// comes, and the initiator may have sent its only message before it waits for an answer.
// So an initiator sends writes of no bytes, which have no effect on any peer. There are
// places for two; see gd_nudge.
const nudges = 2

// nudge sends one of a life's nudges.
func (q *queuePair) nudge(life uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.life != life || q.at() != phaseUp {
		return
	}
	C.gd_nudge(q.c)
	if q.nudged++; q.nudged < nudges {
		q.dev.watcher.setAlarm(alarmNudge, q, life)
	}
}
