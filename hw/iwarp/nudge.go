package iwarp

import "time"

// nudges is the number of nudges.
//
// Linux's siw sends its reply to the initiator, and takes over the socket after that.
// It does not see octets that the initiator has sent in between until more come: its
// accept may wait for a ready-to-receive that has arrived, or the initiator's program for
// the answer to a message that siw has not read. So an initiator nudges a peer of another
// implementation: it sends writes of no octets, at growing intervals, until the peer
// sends something. A write of no octets has no effect on any peer (RFC 5040 section 3).
//
// The parameter nudge is the time before the first nudge. Each further nudge waits twice
// as long as the one before it.
const nudges = 7

// patience is how long the receiver waits before it nudges the peer or checks its pulse;
// 0 means without a limit.
func (r *reader) patience() time.Duration {
	if r.nudgeAfter > 0 {
		return r.nudgeAfter
	}
	return r.pulseAfter
}

// nudgePeer asks the sender for a nudge, unless the peer has sent something or has had
// all its nudges.
func (r *reader) nudgePeer() {
	r.own.Check()
	if r.seen || r.nudgeAfter>>nudges >= r.link.dev.set.nudge {
		r.nudgeAfter = 0
	} else {
		r.nudgeAfter *= 2
		r.link.attention.Or(nudging)
		r.link.kick(byReceiver)
	}
	r.limit(r.patience())
}
