package soft

import (
	"sync"
	"sync/atomic"

	"godat/hw"
)

// Phase is the stage that a life's attempt to connect is in. A provider may have more phases
// beyond Connected.
type Phase uint8

// The phases.
const (
	Unconnected Phase = iota
	Connecting        // asked, or answering, or pairing
	Announcing        // how the attempt ended is being reported
	Refused
	Connected
)

// Life is what all providers keep of one life of a queue pair: from NewQP or Reset to the end
// of both its queues, with one attempt to connect.
type Life struct {
	qp   *QP          // immutable
	Ends atomic.Int32 // queues that have ended

	// Mu decides which of several events ends an attempt to connect or a connection. Its
	// holder calls neither facts nor sinks.
	Mu    sync.Mutex
	Phase Phase
	Dead  bool // nothing can come of the life any more: Break was called, or the connection is over
}

// Begin makes l the life of a queue pair.
func (l *Life) Begin(q *QP) { l.qp, q.life = q, l }

// Attempt starts the attempt to connect. It fails unless the life is new.
func (l *Life) Attempt(op string) error {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Phase != Unconnected || l.Dead {
		return l.qp.dev.Errorf(op, hw.InvalidState, l.state(), "the queue pair is not new or reset")
	}
	l.Phase = Connecting
	return nil
}

// Ended reports whether both queues have ended.
func (l *Life) Ended() bool { return l.Ends.Load() == 2 }

// Unused reports whether the life is new: neither an attempt nor Break has begun.
func (l *Life) Unused() bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Phase == Unconnected && !l.Dead
}

// Invalid is the error of a call for which the life is in the wrong phase.
func (l *Life) Invalid(op, why string) error {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.qp.dev.Errorf(op, hw.InvalidState, l.state(), "%s", why)
}

// state is the endpoint state nearest to the phase. The lock is held.
func (l *Life) state() hw.Subtype {
	switch {
	case l.Dead, l.Phase == Refused:
		return hw.StateEPDisconnected
	case l.Phase == Unconnected:
		return hw.StateEPUnconnected
	case l.Phase < Refused:
		return hw.StateEPActiveConnectionPending
	}
	return hw.StateEPConnected
}

// MayEnd returns an error unless the queue pair's life is new or over, so that Reset or Close
// may end it.
func (q *QP) MayEnd(op string) error {
	switch {
	case q.closed.Load():
		return q.dev.Gone(op)
	case !q.life.Ended() && !q.life.Unused():
		return q.life.Invalid(op, "the queues of the queue pair have not both ended")
	}
	return nil
}
