//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

// Linux's siw, as the acceptor, sends its answer before it takes over the socket
// (siw_accept). It does not look at what the initiator has sent in between until more
// comes, and the initiator may have sent its only message before it waits for an answer.
// So both ends of a connection on soft-iWARP nudge each other: they send requests of no
// bytes, which have no effect on any peer.
//
// A connection that is up has an alarm each 250 ms (alarmDelays). The initiator does not
// know when the acceptor takes over the socket, which a busy machine may delay. It sends
// writes, at the alarms 1, 2, 4, and so on.
//
// The acceptor has taken over its socket when its device tells that the connection is up.
// If no receive has completed by the alarm readNudge, it sends a read, whose answer makes
// siw look. It does not do so earlier, since an initiator on siw refuses the connection if
// something comes close behind the answer to its request.
const (
	readNudge = 4
	lastNudge = 16 // of the initiator
)

// nudge handles an alarm of a life, which nudges the peer if its turn has come.
func (q *queuePair) nudge(life uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.life != life || q.at() != phaseUp {
		return
	}
	q.nudged++
	last := lastNudge
	if q.conn.passive {
		last = readNudge
		if q.nudged == readNudge && q.up.reads_out > 0 && C.gd_heard(q.c) == 0 {
			C.gd_nudge(q.c, 1)
		}
	} else if q.nudged&(q.nudged-1) == 0 {
		C.gd_nudge(q.c, 0)
	}
	if q.nudged < last {
		q.dev.watcher.setAlarm(alarmNudge, q, life)
	}
}
