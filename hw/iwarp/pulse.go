package iwarp

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"godat/hw"
)

// TCP's keep-alive notices a host that is gone without a word, and the system of a process
// that has died closes its connections. Neither notices a peer that is stuck, because the
// peer's kernel answers for it, and not every connection is TCP. So the receiver looks four
// times in the time of the parameter keepalive whether octets have come. The connection
// ends when none have come for about that time while the peer owes the answer to a read, and
// while its system takes nothing more of what was sent before: over a slow link a read stands
// behind all that the socket has taken, and its answer may take any time (see judge).
//
// If a peer of this package owes nothing, the sender probes it: it sends a read of no
// octets, which such a peer always answers. Of two ends at rest one probes, once in about two looks, and the
// other one does not look (atRest). The probe takes the place of one of the reads
// that the peer has agreed to, or a place of its own if there is none.
//
// No peer of another kind is probed: siw may answer a read of no octets with others, and so break
// the connection (doc.go). Nothing else that RDMAP has
// makes such a peer answer: a read of one octet needs a key of the peer's. So of such a
// peer's process this end learns what its system says, and whether it owes an answer.
// A kernel that speaks iWARP for the process, as siw is, answers a read for it, too.
//
// Each look also asks TCP whether the peer's system takes what is on its way to it. If it takes
// nothing for the time keepalive, its host is gone, or its process is stuck and the room of its
// socket used up. TCP could bound that by itself (TCP_USER_TIMEOUT). But TCP's bound runs on while
// this process is paused, and would end connections whose two ends are paused together.
//
// How long a peer may take no octets while the writer waits is another bound, of the parameter
// stall.

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
	if !l.agreed.extended && l.agreed.readsOut == 0 && !tellsTraffic(l.conn) { // the peer can owe nothing
		return 0
	}
	return l.dev.set.keepalive / looks
}

// lateness is how long ago the deadline of the receiver's wait has passed.
func (l *link) lateness() time.Duration {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return time.Since(l.readAt)
}

// tellsTraffic reports whether the system tells the traffic of a connection.
func tellsTraffic(conn net.Conn) (ok bool) {
	if tcp := tcpUnder(conn); tcp != nil {
		_, ok = trafficOf(tcp)
	}
	return ok
}

// checkPulse is one look: it ends the connection if the peer's system takes nothing of what is on
// its way. It has a silent peer of this package probed, and ends the
// connection if the peer has not answered a read for the time keepalive. It returns nil to
// go on.
func (r *reader) checkPulse() error {
	r.own.Check()
	l := r.link
	owed := l.reads.outstanding() > 0
	waiting, moves := r.flow.look(l.conn)
	if r.carrier.look(l.lateness(), !waiting || moves) {
		l.die(ending{why: hw.ReasonBroken, cause: &hw.Cause{
			Layer: hw.LayerTCP, Err: errors.Join(hw.ErrTimeout, syscall.ETIMEDOUT),
			Text: fmt.Sprintf("the peer's system has taken nothing for %s of what is on its way: %s", span(r.carrier.silence()), heardOf(l.conn).who()),
		}})
		return errOver
	}
	switch {
	case r.seen, !owed && !l.agreed.extended:
		r.seen = false
		r.hasSigned()
	case isLate(l.lateness(), r.pulseAfter): // what the peer has sent may wait as well
	case unread(l.conn): // nobody has read what the peer has sent
	case moves: // what the peer owes may stand behind what is on its way there
		r.hasSigned()
	case l.busy.Load(): // the peer may be taking what the writer writes
	default:
		r.silent++
		r.tellSilence()
		if !owed {
			l.attention.Or(probing)
			l.kick(byReceiver)
		} else if r.silent >= looks-1 {
			l.die(ending{why: hw.ReasonBroken, cause: r.silence()})
			return errOver
		}
	}
	r.limit(r.pulseAfter)
	return nil
}

// atRest puts the next look off, before the receiver waits, when the peer of a connection at rest has just shown that
// it lives: it has answered this end's probe, or has sent its own. Without that the next look would find this sign and
// do nothing, so atRest leaves that look out. The end that has probed waits for a little less than the other one, so
// that of two ends at rest one alone probes, and the other one does not look.
func (r *receiver) atRest() {
	off := 2 * r.pulseAfter
	switch {
	case r.silent > 0 && r.seen:
		off -= r.pulseAfter / 8
	case !r.place.probed:
		return
	}
	r.place.probed = false
	if !r.hurried && r.nudgeAfter == 0 && r.pulseAfter > 0 && r.link.attention.Load()&bounded == 0 {
		r.seen = false
		r.hasSigned()
		r.limit(off)
	}
}

// silence is the cause of a peer that answers nothing.
func (r *reader) silence() *hw.Cause {
	r.own.Check()
	owed := "this library's probe"
	if read := r.link.reads.oldest(); read != nil && read.stag != rtrSTag {
		owed = "this program's " + read.op.String()
	}
	return &hw.Cause{
		Layer: hw.LayerRDMAP, Err: hw.ErrTimeout,
		Text: fmt.Sprintf("nothing has come from the peer for %s, nor the answer to %s: %s", span(time.Since(r.quiet)), owed, heardOf(r.link.conn).who()),
	}
}

// hasSigned begins the peer's time anew, which has given a sign of life.
func (r *reader) hasSigned() {
	r.own.Check()
	r.silent, r.quiet = 0, time.Now()
	r.tellSilence()
}

// tellSilence tells the queue pair's owner for how long the peer has not answered. The first look
// that finds nothing has the peer asked; those behind it find that it does not answer.
func (r *reader) tellSilence() {
	r.own.Check()
	d := time.Duration(max(r.silent-1, 0)) * r.pulseAfter
	if facts, ok := r.link.facts.(hw.SilenceFacts); ok && d != r.told {
		facts.Silent(d)
		r.told = d
	}
}
