package iwarp

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/internal/sock"
	"godat/internal/token"
)

// The bits of a link's attention word.
const (
	broken     = 1 << iota // the connection is over, and the holder flushes; see die
	draining               // Drain was called
	closed                 // Break was called
	idleRecv               // no receiver runs: the token's holder owns its state
	finSent                // this end's half is closed, and the peer's answer awaited
	bounded                // the receiver's time is limited from here on
	probing                // the receiver asks the sender for a probe; see pulse.go
	nudging                // the receiver asks the sender for a nudge; see nudge.go
	sendAbsent             // the sender is not in the set of its zone's accessors; see soft.Presence
	recvAbsent             // nor is the placer
	marked                 // the owner asked for a mark; see Mark
)

// link is the state that the sender, the writer and the receiver of a connection share:
// the agreement, whether the connection lives, the socket's deadlines, the requests
// outstanding in each direction, and the token, by which the receiver gets the sender's
// work done.
type link struct {
	// Immutable.
	qp    *queuePair
	dev   *device
	facts hw.Facts
	right *sock.Right // the receiver's

	// Immutable once begun.
	agreed agreement
	ops    hw.OpSet // operations that PostSend takes
	haul   haul
	rxDone chan struct{} // closed when the receiver has gone

	// Shared.
	attention atomic.Uint32
	up        atomic.Bool         // posts are taken
	reads     readQueue           // the sender pushes, the receiver retires
	answers   responseQueue       // the receiver pushes, the sender retires
	tap       atomic.Pointer[tap] // nil without a trace that began when the connection was up

	// The holder of its lock calls nothing but cancel, the setters of the socket's deadlines,
	// and what asks the system about the socket.
	soft.Life
	begun   bool     // the connection's goroutines run, or have run
	ending  ending   // immutable once dead
	sendErr error    // why the socket takes nothing more; nil while it does
	conn    net.Conn // immutable once begun
	cancel  context.CancelFunc
	// The deadline of the receiver's wait, and whether an interrupt hides it; see parties.
	readAt      time.Time
	interrupted bool
	stalls      stalls // of the writer's waits

	_ [soft.CacheLine]byte

	owner *connection   // immutable: the token's holder does its work
	token token.Counted // shared
	// busy is set while the writer has a job.
	busy atomic.Bool
}

// ending says why a connection is over.
type ending struct {
	why     hw.Reason
	cause   *hw.Cause // what broke it; nil if nothing did
	term    []byte    // the last ULPDU, which tells the peer; nil for none
	verdict verdict   // on this end's requests
	// About the end of the peer's stream:
	farewell bool // the peer said that it leaves in order
	partial  bool // the stream ended inside of a message
}

// verdict names the requests for which the end of a connection means another status
// than StatusFlushed.
type verdict struct {
	read   uint64    // a read, counted from 1; 0 for none
	status hw.Status // the read's status
	other  hw.Status // status of the oldest begun request with one of the operations op; 0 means flushed
	op     hw.OpSet  // reads and atomics never count
}

// announce reports how the attempt ended, unless Break or an earlier report ended it. The
// queues do not end during the report: nothing may be reported after their end.
func (l *link) announce(then soft.Phase, report func()) {
	l.Mu.Lock()
	if l.Phase != soft.Connecting || l.attention.Load()&closed != 0 {
		l.Mu.Unlock()
		return
	}
	l.Phase = soft.Announcing
	l.Mu.Unlock()
	report()
	l.Mu.Lock()
	l.Phase = then
	l.Mu.Unlock()
	l.kick(byReceiver)
}

// refuse reports that the attempt failed.
func (l *link) refuse(why hw.Reason, private []byte, cause *hw.Cause) {
	cause = l.addressed(cause)
	l.announce(soft.Refused, func() { l.facts.Refused(why, private, cause) })
}

// establish reports that the connection is up. If something ends the connection
// meanwhile, the receiver finds it, because it runs in any case.
func (l *link) establish(private []byte) {
	l.announce(soft.Connected, func() {
		l.up.Store(true)
		l.facts.Established(hw.ConnInfo{
			Local: l.conn.LocalAddr(), Remote: l.conn.RemoteAddr(),
			ReadsIn: l.agreed.readsIn, ReadsOut: l.agreed.readsOut, Private: private,
		})
	})
}

// addressed is the cause with the addresses of the socket, if there is one.
func (l *link) addressed(c *hw.Cause) *hw.Cause {
	l.Mu.Lock()
	conn := l.conn
	l.Mu.Unlock()
	if conn == nil {
		return c
	}
	return c.Between(conn.LocalAddr(), conn.RemoteAddr())
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// die ends the connection, and interrupts the goroutines that wait for its socket.
// Only the first ending counts. The caller kicks the token, or holds it.
func (l *link) die(e ending) {
	defer l.right.Reclaim() // a watcher gives the socket back itself
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Dead {
		return
	}
	l.Dead, l.ending = true, e
	l.attention.Or(broken)
	if l.cancel != nil {
		l.cancel()
	}
	if l.conn != nil {
		_ = l.conn.SetDeadline(past)
	}
}

// stopWriting records why the socket takes nothing more, and limits the time in which
// the receiver may still learn the cause from the peer.
func (l *link) stopWriting(err error) {
	l.Mu.Lock()
	if l.sendErr == nil {
		l.sendErr = err
	}
	l.Mu.Unlock()
	l.limitEnd()
}

// limitRead sets how long the receiver waits for the socket; 0 means without a limit.
func (l *link) limitRead(d time.Duration) {
	var t time.Time
	if d > 0 {
		t = time.Now().Add(d)
	}
	l.Mu.Lock()
	if !l.Dead && l.attention.Load()&bounded == 0 {
		l.setReadAt(t)
	}
	l.Mu.Unlock()
}

// limitEnd limits the time that the receiver has left.
func (l *link) limitEnd() {
	l.Mu.Lock()
	l.attention.Or(bounded)
	if !l.Dead {
		l.setReadAt(time.Now().Add(l.dev.set.linger))
	}
	l.Mu.Unlock()
	l.right.Reclaim()
}

// setReadAt sets the deadline of the receiver's wait. mu is held.
func (l *link) setReadAt(t time.Time) {
	l.readAt = t
	if !l.interrupted {
		_ = l.conn.SetReadDeadline(t)
	}
}

// settle ends an interrupt, and reports whether nothing else has ended the wait: the connection
// may be dead, or the deadline that the interrupt hides may have passed too.
func (l *link) settle() bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	was := l.interrupted
	if was {
		l.interrupted = false
		if !l.Dead {
			_ = l.conn.SetReadDeadline(l.readAt)
		}
	}
	return was && !l.Dead && (l.readAt.IsZero() || time.Now().Before(l.readAt))
}
