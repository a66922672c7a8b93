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
func (x *receiving) patience() time.Duration {
	if x.nudge > 0 {
		return x.nudge
	}
	return x.pulse
}

// nudge is what the receiver does when the peer had time to say something.
func (l *life) nudge() {
	x := &l.rx
	if x.seen || x.nudge>>nudges >= l.dev.set.nudge {
		x.nudge = 0
	} else {
		x.nudge *= 2
		l.attention.Or(nudging)
		l.kick(receiverBudget)
	}
	l.deadline(x.patience())
}

// sendNudge has the write sent that the receiver asks for.
func (l *life) sendNudge() {
	l.attention.And(^uint32(nudging))
	if t := &l.tx; !t.rtrDue {
		t.rtr, t.rtrDue = wire.OpWrite, true
	}
}
