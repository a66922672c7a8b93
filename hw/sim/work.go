package sim

import (
	"time"

	"godat/hw"
)

// work does one piece of a queue pair's work and reports whether there may be more. The
// queue pair's own engine calls it with sim.mu held; work releases it while it copies
// memory and while it tells a fact.
func (q *queuePair) work() (more bool) {
	if len(q.facts) > 0 {
		q.tell()
		return true
	}
	switch q.state {
	case stateConnecting:
		return q.connecting()
	case stateAccepting:
		return q.accepting()
	case stateUp:
		return q.transfer()
	case stateDown, stateBroken:
		return q.flush()
	default: // nothing to do
		return false
	}
}

// transfer is the work of a connected queue pair.
func (q *queuePair) transfer() (more bool) {
	switch {
	case q.notice != hw.ReasonNone:
		q.peer = nil
		q.down(q.notice, q.noticed)
		return true
	case q.held:
		return false // Established has not returned; after tell the queue pair runs again
	}
	read, begin := q.sq.reads > 0 && q.reachesPeer(), q.sq.canBegin()
	switch {
	case read && (!begin || q.dev.rng.IntN(2) == 0):
		q.sq.response()
	case begin:
		q.sq.begin()
	case q.draining && q.sq.head == q.sq.tail:
		if q.dev.rng.IntN(2) == 0 {
			q.disconnect(hw.ReasonPeer, nil) // by chance now, otherwise only at Break
		}
		q.down(hw.ReasonDrained, nil)
	default:
		return false
	}
	q.sq.retire()
	return true
}

// reachesPeer reports whether a message that is sent now reaches the peer. When the answer
// becomes true the queue pair is scheduled.
func (q *queuePair) reachesPeer() bool { return q.peer != nil && q.peer.takesMessages() }

// takesMessages reports whether the queue pair takes its peer's messages.
func (q *queuePair) takesMessages() bool {
	return q.state == stateUp && !q.held && q.notice == hw.ReasonNone || q.answering()
}

// waitsForReceive reports whether a send that finds no receive waits for one, and sets
// its deadline. PostRecv of the peer, or the deadline, schedules the queue pair again.
func (q *queuePair) waitsForReceive() bool {
	if q.dev.sim.cfg.NoNotReadyWait || q.cfg.NotReady == 0 {
		return false
	}
	if q.deadline.IsZero() {
		q.dev.setDeadline(q, time.Now().Add(q.cfg.NotReady))
	}
	return true
}

// expire acts on the passed deadline of a queue pair: of its attempt to connect, or of a
// send that waited for a receive.
func (q *queuePair) expire() {
	switch q.state {
	case stateConnecting:
		q.attempt.withdraw()
		q.refused(hw.ReasonTimeout, nil, &hw.Cause{
			Text: "the peer did not answer in time", Err: hw.ErrTimeout, Local: q.attempt.remote, Remote: q.attempt.local,
		})
	case stateUp:
		if p := q.peer; q.reachesPeer() && !p.rq.ready() && q.sq.next < q.sq.tail {
			q.sq.finishNext(hw.StatusReceiverNotReady)
			q.sq.retire()
		}
		q.dev.schedule(q)
	default: // the wait had ended before the deadline
	}
}
