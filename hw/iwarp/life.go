package iwarp

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/internal/owner"
)

// phase is where the connection of a life stands.
type phase uint8

const (
	unconnected phase = iota
	connecting        // asked, or answering
	telling           // Established or Refused is being reported
	refused
	connected
)

// What a life's attention word says.
const (
	broken   = 1 << iota // flush; see die
	draining             // Drain was called
	closed               // Break was called
	idleRecv             // nobody receives: the receive queue is the token holder's
	finSent              // our half is closed, and the peer's answer awaited
	bounded              // the receiver's time is limited from here on
	asking               // the peer is to show that it is there; see pulse.go
	nudging              // the peer is to look again; see nudge.go
)

// life is what a queue pair is from NewQP or Reset to the OpEnd of both queues.
type life struct {
	// Immutable.
	qp    *queuePair
	dev   *device
	view  soft.View
	facts hw.Facts
	sq    *sendQueue
	rq    *recvQueue

	attention atomic.Uint32
	ends      atomic.Int32 // queues that have ended
	up        atomic.Bool  // posts are taken

	// mu settles who ends an attempt to connect, and why a connection ended.
	// Nothing is called under it but a connection's deadlines.
	mu      sync.Mutex
	phase   phase
	begun   bool // the goroutines of a connection run, or have
	dead    bool
	why     hw.Reason // why it is dead
	cause   *hw.Cause // what exactly broke it
	term    []byte    // the last ULPDU, which says so; may be nil
	sendErr error     // why the connection takes nothing more
	conn    net.Conn
	cancel  context.CancelFunc

	// Immutable once begun.
	agreed  agreement
	port    port
	reads   readQueue     // shared; see there
	answers responseQueue // shared; see there

	_ [soft.CacheLine]byte

	// word is shared; see token.go. sender, which does what blocks, works on job
	// from its wake-up until it clears busy.
	word atomic.Uint64
	busy atomic.Bool
	wake chan struct{} // nil until there is something for it
	job  job
	own  owner.Tag

	// The token holder's.
	out        outbox
	tx         sending
	wcs        [batch]hw.WC
	saidDown   bool
	sqEnded    bool
	rqEnded    bool
	undertaken bool

	_ [soft.CacheLine]byte

	// touch is odd while the receiver touches memory. The rest is the receiver's.
	touch atomic.Uint64
	rx    receiving

	// What the receiver found out about our requests, published by die.
	verdict verdict
	rxDone  chan struct{} // closed when the receiver has gone
}

// batch is how many completions are handed out at a time.
const batch = 32

// verdict is what the end of a connection says of requests that had not
// completed, other than that they are flushed.
type verdict struct {
	read   uint64 // this read, counted from 1
	status hw.Status
	other  hw.Status // the oldest that is no read and not sent; 0 means flushed
	op     hw.OpSet  // if it is one of these
}

func newLife(q *queuePair) *life {
	l := &life{
		qp: q, dev: q.dev, view: q.View(&q.dev.Device), facts: q.cfg.Facts,
		sq: newSendQueue(q.cfg.SendDepth), rq: newRecvQueue(q.cfg.RecvDepth),
	}
	l.attention.Store(idleRecv)
	return l
}

// attempt starts an attempt to connect; there is one in a life.
func (l *life) attempt(op string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.phase != unconnected || l.dead {
		return hw.Errorf(op, hw.InvalidState, l.state(), "the queue pair is not new or reset")
	}
	l.phase = connecting
	return nil
}

// state is the endpoint state that comes nearest. The lock is held.
func (l *life) state() hw.Subtype {
	switch {
	case l.dead, l.phase == refused:
		return hw.StateEPDisconnected
	case l.phase == connecting:
		return hw.StateEPActiveConnectionPending
	case l.phase == unconnected:
		return hw.StateEPUnconnected
	}
	return hw.StateEPConnected
}

// hold makes conn the one that Break interrupts; false means that Break came
// first, and conn is the caller's to close.
func (l *life) hold(conn net.Conn, cancel context.CancelFunc) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return false
	}
	l.conn, l.cancel = conn, cancel
	return true
}

// tell reports how the attempt ended, if nothing ended it before. Queues don't
// end while it does: after that nothing of this life may be reported.
func (l *life) tell(then phase, report func()) bool {
	l.mu.Lock()
	if l.phase != connecting || l.attention.Load()&closed != 0 {
		l.mu.Unlock()
		return false
	}
	l.phase = telling
	l.mu.Unlock()
	report()
	l.mu.Lock()
	l.phase = then
	l.mu.Unlock()
	l.kick(receiverBudget)
	return true
}

// refuse reports that the attempt failed.
func (l *life) refuse(why hw.Reason, private []byte, cause *hw.Cause) {
	cause = l.addressed(cause)
	l.tell(refused, func() { l.facts.Refused(why, private, cause) })
}

// past is a deadline that has been.
var past = time.Unix(1, 0)

// die says why the connection is over, once, and makes everybody stop. cause may be
// nil unless it broke; term is the ULPDU that tells the peer, nil for none.
func (l *life) die(why hw.Reason, cause *hw.Cause, term []byte, v verdict) {
	l.mu.Lock()
	if l.dead {
		l.mu.Unlock()
		return
	}
	l.dead, l.why, l.cause, l.term, l.verdict = true, why, cause, term, v
	l.attention.Or(broken)
	if l.cancel != nil {
		l.cancel()
	}
	if l.conn != nil {
		_ = l.conn.SetDeadline(past)
	}
	l.mu.Unlock()
}

// breakUp is Break.
func (l *life) breakUp(orderly bool) {
	l.mu.Lock()
	again := l.attention.Or(closed)&closed != 0
	kindred := l.begun && l.agreed.extended
	l.mu.Unlock()
	if again {
		return
	}
	var term []byte
	switch {
	case !orderly:
		term = localTerminate()
	case kindred:
		term = farewell()
	}
	l.die(hw.ReasonNone, nil, term, verdict{})
	l.kick(posterBudget)
}

// over reports whether both queues have ended.
func (l *life) over() bool { return l.ends.Load() == 2 }

// pristine reports whether the life has not begun to connect.
func (l *life) pristine() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.phase == unconnected && !l.dead
}
