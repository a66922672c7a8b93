package sim

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"godat/hw"
)

// state is the state of a queue pair's connection.
type state uint8

const (
	stateNew        state = iota
	stateConnecting       // its request has no answer yet
	stateAccepting        // it has accepted; becomes up after the initiator
	stateUp
	stateRefused // the attempt failed; Break follows
	stateDown    // the connection is over; Break follows
	stateBroken  // Break was called; the engine flushes both queues, then ends them
	stateClosed
)

var stateText = [...]string{"new", "connecting", "accepting", "up", "refused", "down", "broken", "closed"}

func (s state) String() string { return stateText[s] }

// queuePair implements [hw.QP].
type queuePair struct {
	// Immutable.
	dev    *Device
	zone   *zone
	cfg    hw.QPConfig
	sendCQ *completionQueue
	recvCQ *completionQueue

	calls      atomic.Int32 // calls of the owner under way: 0 or 1, or a violation
	endsPolled atomic.Int32 // how many of the two OpEnds the owner has polled

	// The engine's run queue; guarded by dev.sim.mu, as is the rest.
	queued   bool // in dev.runnable
	wait     int
	deadline time.Time

	// The queues.
	state    state
	sq       sendQueue
	rq       recvQueue
	ended    [2]bool
	draining bool

	// The connection.
	attempt   *request    // as the initiator, while connecting
	request   *request    // as the acceptor, while accepting
	values    hw.PairAddr // without number until somebody asked for them
	caller    *queuePair  // has paired with this one, which may pair with it in turn
	peer      *queuePair  // nil when messages can't reach the other end
	confirmed bool        // accepting: the initiator is up
	held      bool        // up, but Established has not returned
	notice    hw.Reason   // why the peer ended the connection, until the engine acts on it
	noticed   *hw.Cause   // the cause of notice
	readsOut  int         // as agreed with the peer
	readsIn   int

	facts []fact // facts that the engine still has to tell, the oldest first
}

// fact is one call of a method of hw.Facts, and what follows it.
type fact struct {
	call func(hw.Facts)
	then func() // nil for nothing; runs with sim.mu held
}

// NewQP implements [hw.Device].
func (d *Device) NewQP(cfg hw.QPConfig) (hw.QP, error) {
	const op = "sim.NewQP"
	scq, _ := cfg.SendCQ.(*completionQueue)
	rcq, _ := cfg.RecvCQ.(*completionQueue)
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	z, err := d.openZone(op, cfg.Zone)
	switch {
	case err != nil:
		return nil, err
	case scq == nil || rcq == nil || scq.dev != d || rcq.dev != d || scq.closed || rcq.closed:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "a polled device needs completion queues of its own")
	case cfg.SendSink != nil || cfg.RecvSink != nil:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "a polled device has no sinks")
	case cfg.Facts == nil:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "Facts is nil")
	case outside(cfg.SendDepth, maxDepth) || outside(cfg.RecvDepth, maxDepth),
		outside(cfg.SendSegments, maxSegments) || outside(cfg.RecvSegments, maxSegments),
		outside(cfg.ReadsIn, maxReads) || outside(cfg.ReadsOut, maxReads):
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "a limit of Attr is exceeded")
	}
	srq, err := d.shared(op, cfg.SRQ, z)
	if err != nil {
		return nil, err
	}
	if srq != nil {
		cfg.RecvDepth = 1 // room for the receive that a message is being placed into
	}
	q := &queuePair{dev: d, zone: z, cfg: cfg, sendCQ: scq, recvCQ: rcq}
	srq.join(q)
	q.sq = sendQueue{qp: q, slots: make([]slot, cfg.SendDepth)}
	q.rq = recvQueue{qp: q, srq: srq, slots: make([]hw.RecvWR, cfg.RecvDepth)}
	z.users++
	scq.users++
	rcq.users++
	d.children++
	return q, nil
}

func outside(n, limit int) bool { return n < 0 || n > limit }

// enter begins a call of the owner and takes sim.mu; leave ends it. It records a
// violation when another call is under way. Calls don't block, so one lock is enough.
func (q *queuePair) enter(call string) {
	second := q.calls.Add(1) != 1
	q.dev.sim.mu.Lock()
	if second {
		q.dev.violateLocked("%s while another call on the queue pair is under way", call)
	}
}

func (q *queuePair) leave() {
	q.dev.sim.mu.Unlock()
	q.calls.Add(-1)
}

// answering reports whether the queue pair has accepted and the initiator is up, but its
// own engine has not made it up yet. It takes messages then, so its owner may also post
// the answers to them.
func (q *queuePair) answering() bool { return q.state == stateAccepting && q.confirmed }

// Drain implements [hw.QP].
func (q *queuePair) Drain() {
	q.enter("Drain")
	defer q.leave()
	if q.state != stateUp && q.state != stateDown && !q.answering() {
		q.dev.violateLocked("Drain of a queue pair that is %v", q.state)
		return
	}
	q.draining = true
	q.dev.schedule(q)
}

// Break implements [hw.QP].
func (q *queuePair) Break(orderly bool) {
	q.enter("Break")
	defer q.leave()
	why := hw.ReasonBroken
	if orderly {
		why = hw.ReasonPeer
	}
	switch q.state {
	case stateBroken, stateClosed:
		q.dev.violateLocked("Break of a queue pair that is %v", q.state)
		return
	case stateConnecting:
		q.attempt.withdraw()
	case stateAccepting:
		if !q.confirmed {
			q.request.refuse(hw.ReasonRejected, "the peer gave up accepting", nil)
		}
	default: // no request is unanswered
	}
	q.disconnect(why, &hw.Cause{Text: "the peer broke the connection", Found: hw.SidePeer})
	q.state = stateBroken
	q.dev.clearDeadline(q)
	q.dev.schedule(q)
}

// Reset implements [hw.QP].
func (q *queuePair) Reset() error {
	q.enter("Reset")
	defer q.leave()
	if q.state != stateBroken || !q.over() {
		return hw.Errorf("sim.QP.Reset", hw.InvalidState, hw.NoSubtype, "the queue pair is %v: call Break, and poll until both OpEnds have come", q.state)
	}
	q.state, q.ended, q.draining = stateNew, [2]bool{}, false
	q.endsPolled.Store(0)
	q.attempt, q.request, q.peer = nil, nil, nil
	q.values = hw.PairAddr{}
	q.confirmed, q.held, q.notice, q.noticed = false, false, hw.ReasonNone, nil
	return nil
}

// Close implements [hw.QP].
func (q *queuePair) Close() error {
	const op = "sim.QP.Close"
	q.enter("Close")
	defer q.leave()
	switch {
	case q.state == stateClosed:
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleEP, "closed twice")
	case q.state != stateNew && (q.state != stateBroken || !q.over()):
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "the queue pair is %v: call Break, and poll until both OpEnds have come", q.state)
	}
	q.disconnect(hw.ReasonBroken, &hw.Cause{Text: "the peer closed its queue pair", Found: hw.SidePeer})
	q.state = stateClosed
	q.zone.users--
	q.sendCQ.users--
	q.recvCQ.users--
	q.rq.srq.leave(q)
	q.dev.children--
	return nil
}

// over reports whether both queues have ended and the owner has polled both OpEnds.
func (q *queuePair) over() bool {
	return q.ended[sending] && q.ended[receiving] && q.endsPolled.Load() == 2
}

// addFact queues a fact. The device's engine tells it later, with no lock held.
func (q *queuePair) addFact(f fact) {
	q.facts = append(q.facts, f)
	q.dev.schedule(q)
}

// tell calls the owner's Facts with the oldest fact, with sim.mu released.
func (q *queuePair) tell() {
	f := q.facts[0]
	mu := &q.dev.sim.mu
	mu.Unlock()
	f.call(q.cfg.Facts)
	mu.Lock()
	// The fact stays in facts until the call has returned: the queues don't end while
	// there are facts to tell.
	q.facts = slices.Delete(q.facts, 0, 1)
	if f.then != nil {
		f.then()
	}
}

// established queues the fact Established. Afterwards the queue pair takes the peer's
// messages, and the peer's engine may send them.
func (q *queuePair) established(info hw.ConnInfo) {
	q.addFact(fact{func(f hw.Facts) { f.Established(info) }, func() {
		if q.held = false; q.peer != nil {
			q.peer.dev.schedule(q.peer)
		}
	}})
}

// disconnect separates the queue pair from its peer and notifies the peer that the connection
// is over. cause is the cause as the peer is told it.
func (q *queuePair) disconnect(why hw.Reason, cause *hw.Cause) {
	delete(q.dev.sim.numbers, q.values.QPN)
	p := q.peer
	if p == nil {
		p = q.caller
	}
	q.peer, q.caller = nil, nil
	if p == nil {
		return
	}
	if p.caller == q {
		p.caller = nil
	}
	if p.peer == q {
		p.peer = nil
		p.notice, p.noticed = why, cause
		p.dev.schedule(p)
	}
}

// down ends a connection that is up and queues the fact Down. The owner calls Break
// after it.
func (q *queuePair) down(why hw.Reason, cause *hw.Cause) {
	if q.state != stateUp {
		return
	}
	q.state = stateDown
	q.dev.clearDeadline(q)
	q.addFact(fact{call: func(f hw.Facts) { f.Down(why, cause) }})
}

// fail breaks the connection on both sides because an operation completed with status.
func (q *queuePair) fail(op hw.Op, status hw.Status) {
	near := &hw.Cause{Code: int(status), Text: fmt.Sprintf("%v ended with %v", op, status), Err: status.Err()}
	far := &hw.Cause{Code: int(status), Text: fmt.Sprintf("the peer's %v ended with %v", op, status), Err: status.Err()}
	switch status {
	case hw.StatusRemoteAccess, hw.StatusRemoteResponder:
		near.Found = hw.SidePeer
	default:
		far.Found = hw.SidePeer
	}
	q.disconnect(hw.ReasonBroken, far)
	q.down(hw.ReasonBroken, near)
}
