package iwarp

import (
	"fmt"
	"net"
	"time"

	"godat/hw"
	"godat/hw/iwarp/wire"
)

// A peer that is gone without a word is noticed by TCP's keep-alive. Over a
// connection without, the receiver sees to it: it looks at the clock four times
// in the time of the parameter keepalive, and when nothing has come since the last
// look it has a read of no octets sent, which any live peer answers. Another read
// that is outstanding serves as well. What the peer does not even take is not
// judged here: the parameter stall bounds that.

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

// pulse is how long the receiver waits between two looks; 0 is for ever. A peer of
// another kind with which no read was agreed on can't be asked, and comes over TCP.
func (l *life) pulse() time.Duration {
	if tcpUnder(l.conn) != nil || l.agreed.readsOut == 0 && !l.agreed.extended {
		return 0
	}
	return max(l.dev.set.keepalive, 0) / looks
}

// look is what the receiver does when the time between two looks has passed; nil
// to go on.
func (l *life) look() error {
	x := &l.rx
	switch {
	case x.seen:
		x.seen, x.silent = false, 0
	case l.busy.Load(): // writing
	default:
		x.silent++
		if l.fetching() == 0 {
			l.attention.Or(asking)
			l.kick(receiverBudget)
		} else if x.silent >= looks-1 {
			l.die(hw.ReasonBroken, &hw.Cause{
				Layer: hw.LayerRDMAP, Err: hw.ErrTimeout,
				Text: fmt.Sprintf("the peer has not answered a read for %v", l.dev.set.keepalive),
			}, nil, verdict{})
			return errOver
		}
	}
	l.deadline(x.pulse)
	return nil
}

// inquire has the read sent that the receiver asks for, unless one is outstanding.
func (l *life) inquire() {
	l.attention.And(^uint32(asking))
	if t := &l.tx; l.fetching() == 0 && !t.rtrDue {
		t.rtr, t.rtrDue = wire.OpReadRequest, true
	}
}
