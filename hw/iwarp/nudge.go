package iwarp

import (
	"time"

	"godat/hw/iwarp/wire"
)

// Linux's siw sends its reply first and takes over the socket after that. What the
// initiator sends in between stays where it is until more comes: an accept may wait
// for a ready-to-receive that is there, or a program for an answer to a message that
// nobody reads. So an initiator whose peer is of another kind sends writes of no
// octets, at growing intervals, until the peer has said something. They are no news
// to any peer: a write of no octets has no effect (RFC 5040 section 3).
//
// The parameter nudge is how long the first one waits; each waits twice as long as
// the one before it.
const nudges = 7

// patience is how long the receiver waits before it does something; 0 is for ever.
func (r *reader) patience() time.Duration {
	if r.nudgeAfter > 0 {
		return r.nudgeAfter
	}
	return r.pulseAfter
}

// nudgePeer is what the receiver does when the peer had time to say something.
func (r *reader) nudgePeer() {
	r.own.Check()
	if r.seen || r.nudgeAfter>>nudges >= r.link.dev.set.nudge {
		r.nudgeAfter = 0
	} else {
		r.nudgeAfter *= 2
		r.link.attention.Or(nudging)
		r.link.kick(receiverBudget)
	}
	r.link.limitRead(r.patience())
}

// sendNudge has the write sent that the receiver asks for.
func (s *sender) sendNudge() {
	s.link.own.Check()
	s.link.attention.And(^uint32(nudging))
	if !s.rtrDue {
		s.rtr, s.rtrDue = wire.OpWrite, true
	}
}
