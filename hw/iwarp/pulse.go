package iwarp

import (
	"fmt"
	"net"
	"time"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// A host that is gone without a word is noticed by TCP's keep-alive. A peer that is
// stuck is not, since its kernel answers for it, nor is anything where there is no TCP.
// So the receiver looks at the clock four times in the time of the parameter keepalive,
// and when nothing has come since the last look it has a read of no octets sent, which
// any live peer answers. The read takes one of the places for reads that the peer has
// agreed to, while none of ours is outstanding; one of ours serves as well. What the
// peer does not even take is not judged here: the parameter stall bounds that.
//
// A peer that has not agreed to any read can't be asked: that its host is there is all
// that is known of it. Where a kernel speaks iWARP for the peer's process, as Linux's
// siw does, it answers the read too, and the process may be stuck behind it.

// looks is how many of them the time has.
const looks = 4

// tcpUnder is the TCP connection that carries conn, or nil: crypto/tls, for one,
// says what it runs over.
func tcpUnder(conn net.Conn) *net.TCPConn {
	for {
		switch c := conn.(type) {
		case *net.TCPConn:
			return c
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return nil
		}
	}
}

// pulse is how long the receiver waits between two looks; 0 is for ever.
func (l *link) pulse() time.Duration {
	if !l.agreed.askable {
		return 0
	}
	return max(l.dev.set.keepalive, 0) / looks
}

// checkPulse is what the receiver does when the time between two looks has passed; nil
// to go on.
func (r *reader) checkPulse() error {
	r.own.Check()
	switch {
	case r.seen:
		r.seen, r.silent = false, 0
	case r.link.busy.Load(): // writing
	default:
		r.silent++
		if r.link.reads.outstanding() == 0 {
			r.link.attention.Or(probing)
			r.link.kick(receiverBudget)
		} else if r.silent >= looks-1 {
			r.link.die(ending{why: hw.ReasonBroken, cause: &hw.Cause{
				Layer: hw.LayerRDMAP, Err: hw.ErrTimeout,
				Text: fmt.Sprintf("the peer has not answered a read for %v", r.link.dev.set.keepalive),
			}})
			return errOver
		}
	}
	r.link.limitRead(r.pulseAfter)
	return nil
}

// sendProbe has the read sent that the receiver asks for, unless one is outstanding.
func (s *sender) sendProbe() {
	s.link.own.Check()
	s.link.attention.And(^uint32(probing))
	if s.link.reads.outstanding() == 0 && !s.rtrDue {
		s.rtr, s.rtrDue = wire.OpReadRequest, true
	}
}
