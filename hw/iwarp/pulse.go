package iwarp

import (
	"fmt"
	"net"
	"time"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// TCP's keep-alive notices a host that is gone without a word. It does not notice a
// peer that is stuck, because the peer's kernel answers for it, and not every connection
// is TCP. So the receiver checks four times in the time of the parameter keepalive
// whether octets have come. If none have come since the last look, the sender probes
// the peer: it sends a read of no octets, which any live peer answers. The probe takes
// the place of one of the reads that the peer has agreed to. The sender sends it only
// while no read of this end is outstanding, because an outstanding read shows as much.
// How long a peer may take no octets is another bound, of the parameter stall.
//
// A peer that has agreed to no read can't be probed: TCP's keep-alive shows only that its
// host is there. Where a kernel speaks iWARP for the peer's process, as with Linux's
// siw, the kernel answers the probe, and the process may be stuck all the same.

// looks is the number of looks in the time keepalive.
const looks = 4

// tcpUnder is the TCP connection that carries conn, or nil. A wrapper such as crypto/tls
// has NetConn.
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

// pulse is how long the receiver waits between two looks; 0 means that it never looks.
func (l *link) pulse() time.Duration {
	if !l.agreed.askable {
		return 0
	}
	return max(l.dev.set.keepalive, 0) / looks
}

// checkPulse is one look: it has a silent peer probed, and ends the connection if the
// peer has not answered a read for the time keepalive. It returns nil to go on.
func (r *reader) checkPulse() error {
	r.own.Check()
	switch {
	case r.seen:
		r.seen, r.silent = false, 0
	case r.link.busy.Load(): // the peer may be taking what the writer writes
	default:
		r.silent++
		if r.link.reads.outstanding() == 0 {
			r.link.attention.Or(probing)
			r.link.kick(byReceiver)
		} else if r.silent >= looks-1 {
			r.link.die(ending{why: hw.ReasonBroken, cause: &hw.Cause{
				Layer: hw.LayerRDMAP, Err: hw.ErrTimeout,
				Text: fmt.Sprintf("the peer has not answered a read for %v", r.link.dev.set.keepalive),
			}})
			return errOver
		}
	}
	r.limit(r.pulseAfter)
	return nil
}

// sendProbe sends the probe that the receiver asks for, unless a read is outstanding.
func (s *sender) sendProbe() {
	s.link.token.Check()
	s.link.attention.And(^uint32(probing))
	if s.link.reads.outstanding() == 0 && !s.rtrDue {
		s.rtr, s.rtrDue = wire.OpReadRequest, true
	}
}
