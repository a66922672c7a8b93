package iwarp

import (
	"time"

	"godat/hw/iwarp/wire"
)

// Linux's siw sends its reply to the initiator, and takes over the socket after that.
// It does not see what the initiator has sent in between until more comes: its accept
// may wait for a ready-to-receive that has arrived, or our program for the answer to a
// message that siw has not read. So an initiator nudges a peer that is not of our own
// kind: it sends writes of no octets, at growing intervals, until the peer sends
// something. A write of no octets has no effect on any peer (RFC 5040 section 3).
//
// The parameter nudge is the time before the first nudge. Each waits twice as long as
// the one before it, and this is how many there are.
const nudges = 7

// patience is how long the receiver waits before it nudges or looks; 0 is for ever.
func (r *reader) patience() time.Duration {
	if r.nudgeAfter > 0 {
		return r.nudgeAfter
	}
	return r.pulseAfter
}

// nudgePeer asks the sender for a nudge, unless the peer has sent something, or had
// enough of them.
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

// sendNudge sends the nudge that the receiver asks for.
func (s *sender) sendNudge() {
	s.link.own.Check()
	s.link.attention.And(^uint32(nudging))
	if !s.rtrDue {
		s.rtr, s.rtrDue = wire.OpWrite, true
	}
}
