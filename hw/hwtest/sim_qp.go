package hwtest

import (
	"fmt"
	"sync/atomic"
	"time"

	"godat/hw"
)

// simState is where a queue pair is in its life.
type simState uint8

const (
	simNew        simState = iota
	simConnecting          // a request is on its way
	simAccepting           // accepted; becomes up when the initiator has heard
	simUp
	simRefused // the attempt failed; Break follows
	simDown    // the connection is over; Break follows
	simBroken  // Break was called; flushes, then ends
	simClosed
)

var simStateText = [...]string{"new", "connecting", "accepting", "up", "refused", "down", "broken", "closed"}

func (s simState) String() string { return simStateText[s] }

// simQP is a queue pair.
type simQP struct {
	// Immutable.
	dev    *SimDevice
	zone   *simZone
	cfg    hw.QPConfig
	sendCQ *simCQ
	recvCQ *simCQ
	srq    *simSRQ // may be nil

	calls      atomic.Int32 // calls of the owner under way: 0 or 1
	endsPolled atomic.Int32 // how many of the two OpEnds the owner has seen

	// The engine's run queue.
	nextRun  *simQP
	queued   bool
	wait     int
	deadline time.Time

	// Guarded by dev.sim.mu, as the above.
	state    simState
	sq       simSendQueue
	rq       simRecvQueue
	ended    [2]bool
	draining bool

	// The connection.
	attempt   *simRequest // as the initiator, while connecting
	request   *simRequest // as the acceptor, while accepting
	peer      *simQP      // while the two can hear each other
	confirmed bool        // accepting: the initiator is up
	held      bool        // up, but Established has not returned
	notice    hw.Reason   // the peer's end, not yet acted upon
	noticed   *hw.Cause   // why
	lost      int         // steps until the loss of the peer is noticed
	readsOut  int         // agreed
	readsIn   int

	facts  [3]simFact // to be told
	nfacts int
}

// simFact is one call of hw.Facts to make.
type simFact struct {
	kind    simFactKind
	why     hw.Reason
	private []byte
	cause   *hw.Cause
	info    hw.ConnInfo
}

type simFactKind uint8

const (
	simEstablished simFactKind = iota
	simWasRefused
	simWentDown
)

// NewQP implements [hw.Device].
func (d *SimDevice) NewQP(cfg hw.QPConfig) (hw.QP, error) {
	const op = "sim.NewQP"
	z, _ := cfg.Zone.(*simZone)
	scq, _ := cfg.SendCQ.(*simCQ)
	rcq, _ := cfg.RecvCQ.(*simCQ)
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	switch {
	case d.closed:
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandleIA, "the device is closed")
	case z == nil || z.dev != d || z.closed:
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "not an open zone of this device")
	case scq == nil || rcq == nil || scq.dev != d || rcq.dev != d || scq.closed || rcq.closed:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "a polled device needs completion queues of its own")
	case cfg.SendSink != nil || cfg.RecvSink != nil:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "a polled device has no sinks")
	case cfg.Facts == nil:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "no facts")
	case outside(cfg.SendDepth, simMaxDepth) || outside(cfg.RecvDepth, simMaxDepth),
		outside(cfg.SendSegments, simMaxSegments) || outside(cfg.RecvSegments, simMaxSegments),
		outside(cfg.ReadsIn, simMaxReads) || outside(cfg.ReadsOut, simMaxReads):
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "a limit of Attr is exceeded")
	}
	srq, err := d.shared(op, cfg.SRQ, z)
	if err != nil {
		return nil, err
	}
	if srq != nil {
		cfg.RecvDepth = 1 // the one that a message is being placed into
	}
	q := &simQP{dev: d, zone: z, cfg: cfg, sendCQ: scq, recvCQ: rcq, srq: srq}
	srq.join(q)
	q.sq.slots = make([]simSlot, cfg.SendDepth)
	q.rq.slots = make([]hw.RecvWR, cfg.RecvDepth)
	z.users++
	scq.users++
	rcq.users++
	d.children++
	return q, nil
}

func outside(n, limit int) bool { return n < 0 || n > limit }

// enter begins a call of the owner: none blocks, so the fabric's lock is all
// there is to take.
func (q *simQP) enter(call string) {
	second := q.calls.Add(1) != 1
	q.dev.sim.mu.Lock()
	if second {
		q.dev.violateLocked("%s while another call on the queue pair is under way", call)
	}
}

func (q *simQP) leave() {
	q.dev.sim.mu.Unlock()
	q.calls.Add(-1)
}

// answering reports whether the queue pair has accepted and the initiator is up,
// but its own engine has not come to that: it takes messages, and so the answers
// to them too.
func (q *simQP) answering() bool { return q.state == simAccepting && q.confirmed }

// Drain implements [hw.QP].
func (q *simQP) Drain() {
	q.enter("Drain")
	defer q.leave()
	if q.state != simUp && q.state != simDown && !q.answering() {
		q.dev.violateLocked("Drain of a queue pair that is %v", q.state)
		return
	}
	q.draining = true
	q.dev.schedule(q)
}

// Break implements [hw.QP].
func (q *simQP) Break(orderly bool) {
	q.enter("Break")
	defer q.leave()
	why := hw.ReasonBroken
	if orderly {
		why = hw.ReasonPeer
	}
	switch q.state {
	case simBroken, simClosed:
		q.dev.violateLocked("Break of a queue pair that is %v", q.state)
		return
	case simConnecting:
		q.attempt.withdraw()
	case simAccepting:
		if !q.confirmed {
			q.request.refuse(hw.ReasonRejected, "the peer gave up accepting", nil)
		}
	default: // nobody is asked or asking
	}
	q.part(why, &hw.Cause{Text: "the peer broke the connection", Found: hw.SidePeer})
	q.state = simBroken
	q.dev.clearDeadline(q)
	q.dev.schedule(q)
}

// Reset implements [hw.QP].
func (q *simQP) Reset() error {
	q.enter("Reset")
	defer q.leave()
	if q.state != simBroken || !q.over() {
		return hw.Errorf("sim.QP.Reset", hw.InvalidState, hw.NoSubtype, "the queue pair is %v and its queues have not ended", q.state)
	}
	q.state, q.ended, q.draining = simNew, [2]bool{}, false
	q.endsPolled.Store(0)
	q.attempt, q.request, q.peer = nil, nil, nil
	q.confirmed, q.held, q.notice, q.noticed, q.lost = false, false, hw.ReasonNone, nil, 0
	return nil
}

// Close implements [hw.QP].
func (q *simQP) Close() error {
	const op = "sim.QP.Close"
	q.enter("Close")
	defer q.leave()
	switch {
	case q.state == simClosed:
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleEP, "closed twice")
	case q.state != simNew && (q.state != simBroken || !q.over()):
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "the queue pair is %v and its queues have not ended", q.state)
	}
	q.state = simClosed
	q.zone.users--
	q.sendCQ.users--
	q.recvCQ.users--
	q.srq.part(q)
	q.dev.children--
	return nil
}

// over reports whether both queues have ended and the owner has polled it.
func (q *simQP) over() bool {
	return q.ended[sendQueue] && q.ended[recvQueue] && q.endsPolled.Load() == 2
}

// fact queues a fact; the device's engine tells it with no lock held.
func (q *simQP) fact(f simFact) {
	q.facts[q.nfacts] = f
	q.nfacts++
	q.dev.schedule(q)
}

// tell tells the oldest fact.
func (q *simQP) tell() {
	f := q.facts[0]
	mu := &q.dev.sim.mu
	mu.Unlock()
	switch f.kind {
	case simEstablished:
		q.cfg.Facts.Established(f.info)
	case simWasRefused:
		q.cfg.Facts.Refused(f.why, f.private, f.cause)
	case simWentDown:
		q.cfg.Facts.Down(f.why, f.cause)
	}
	mu.Lock()
	// Only now is it told: the queues don't end while a fact is on its way.
	copy(q.facts[:], q.facts[1:])
	q.nfacts--
	q.facts[q.nfacts] = simFact{}
	if f.kind == simEstablished {
		q.held = false
		if q.peer != nil {
			q.peer.dev.schedule(q.peer)
		}
	}
}

// part tells the peer that the connection is over, and forgets it. cause is how the
// peer sees it.
func (q *simQP) part(why hw.Reason, cause *hw.Cause) {
	p := q.peer
	if p == nil {
		return
	}
	q.peer = nil
	if p.peer == q {
		p.peer = nil
		p.notice, p.noticed = why, cause
		p.dev.schedule(p)
	}
}

// down ends the connection from within; Break by the owner follows.
func (q *simQP) down(why hw.Reason, cause *hw.Cause) {
	if q.state != simUp {
		return
	}
	q.state = simDown
	q.dev.clearDeadline(q)
	q.fact(simFact{kind: simWentDown, why: why, cause: cause})
}

// fail ends the connection on both sides because an operation ended with status.
func (q *simQP) fail(op hw.Op, status hw.Status) {
	near := &hw.Cause{Code: int(status), Text: fmt.Sprintf("%v ended with %v", op, status), Err: status.Err()}
	far := &hw.Cause{Code: int(status), Text: fmt.Sprintf("the peer's %v ended with %v", op, status), Err: status.Err()}
	switch status {
	case hw.StatusRemoteAccess, hw.StatusRemoteResponder:
		near.Found = hw.SidePeer
	default:
		far.Found = hw.SidePeer
	}
	q.part(hw.ReasonBroken, far)
	q.down(hw.ReasonBroken, near)
}

// lose forgets the peer without a word to anybody.
func (q *simQP) lose() {
	q.peer = nil
	q.lost = q.dev.sim.cfg.LossSteps
	q.dev.schedule(q)
}
