package loop

import (
	"sync/atomic"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/internal/yield"
)

// queuePair is a QP. Its owner makes the calls one at a time.
type queuePair struct {
	// Shared: the side that answers a request installs the pipes of both.
	out, in atomic.Pointer[pipe] // nil until connected

	// Owned by the queue pair's owner; conn and rq are nil in a closed queue pair.
	conn    *connection
	rq      *recvQueue // the connection's
	running bool       // the owner holds out, in a run

	// Immutable.
	segments int // the most a receive may have; -1 refuses all
	dev      *device
	srq      *sharedQueue // may be nil
	soft.QP
}

// NewQP makes a queue pair.
func (d *device) NewQP(cfg hw.QPConfig) (hw.QP, error) {
	q := &queuePair{dev: d, segments: cfg.RecvSegments}
	var shared *soft.SRQ
	if cfg.SRQ != nil {
		q.segments = -1
		if q.srq, _ = cfg.SRQ.(*sharedQueue); q.srq != nil {
			shared = &q.srq.SRQ
		}
	}
	if err := q.Open(&d.Device, &cfg, shared); err != nil {
		return nil, err
	}
	q.begin()
	return q, nil
}

// begin makes a new connection.
func (q *queuePair) begin() {
	q.out.Store(nil)
	q.in.Store(nil)
	q.conn = newConnection(q)
	q.rq = q.conn.rq
}

// sendable holds the operations that PostSend takes.
var sendable = offered &^ hw.Ops(hw.OpRecv, hw.OpRecvImm, hw.OpRecvInvalidate)

// PostSend executes the requests if it can take the pipe, and enqueues the rest. When
// the pipe is free and the attention word is 0, the send queue is empty, so the order
// is kept: the owner kicks the pipe after each enqueue, and no holder lets go before
// the queued requests are done, stalled or flushed.
func (q *queuePair) PostSend(wrs []hw.SendWR) (int, error) {
	p := q.out.Load()
	if p == nil {
		return q.postEarly(wrs)
	}
	w, ok := p.token.TryTake()
	if !ok {
		n, err := q.enqueue(wrs)
		yield.Point()
		p.kick()
		return n, err
	}
	p.grant()
	n := 0
	if p.attention.Load() == 0 || p.arrive() {
		n = p.inline(wrs)
	}
	if n == len(wrs) {
		p.exec.emit()
		yield.Point()
		if p.token.ReleaseIf(w) {
			return n, nil
		}
	}
	return p.rest(n, wrs)
}

// postEarly is PostSend of a queue pair without pipes. The requests of one that is paired
// wait in the send queue.
func (q *queuePair) postEarly(wrs []hw.SendWR) (int, error) {
	switch {
	case q.conn == nil:
		return 0, q.dev.Gone("PostSend")
	case !q.conn.paired:
		return 0, q.conn.Invalid("PostSend", "the queue pair is not connected")
	}
	yield.Point()
	n, err := q.enqueue(wrs)
	yield.Point()
	// The tail is published before out is loaded, and couple stores out before it looks at
	// the queue. So one of the two sees the other.
	if p := q.out.Load(); p != nil {
		p.kick()
	}
	return n, err
}

// enqueue appends requests to the send queue.
func (q *queuePair) enqueue(wrs []hw.SendWR) (int, error) {
	take := wrs
	var refusal error
	binds := false
	for i := range wrs {
		if refusal = q.CheckSend(&wrs[i], sendable); refusal != nil {
			take = wrs[:i]
			break
		}
		binds = binds || wrs[i].Op == hw.OpBind
	}
	n := q.conn.sq.Push(take)
	if n < len(take) {
		refusal = q.Full("PostSend", q.Cfg.SendDepth)
	}
	if binds {
		soft.SpendBinds(wrs[:n])
	}
	return n, refusal
}

// PostRecv appends receives, and kicks the pipe if its attention word is not 0: a send
// waits for a receive, or the pipe is broken.
func (q *queuePair) PostRecv(wrs []hw.RecvWR) (int, error) {
	rq := q.rq
	if rq == nil {
		return 0, q.dev.Gone("PostRecv")
	}
	n, tail, limit := 0, rq.tail.Load(), rq.limit.Load()
	for n < len(wrs) && tail != limit && len(wrs[n].SGL) <= q.segments {
		rq.slots[tail&rq.mask].set(wrs[n].ID, wrs[n].SGL)
		tail++
		n++
	}
	rq.tail.Store(tail)
	yield.Point()
	// The tail is published before attention is loaded; a send that stalls sets its bit
	// before it loads the tail. So one of the two sees the other. A pipe installed
	// meanwhile looks at the queue when it first needs a receive.
	if p := q.in.Load(); p != nil && p.attention.Load()&^absent != 0 {
		p.kick()
	}
	if n < len(wrs) {
		return n, q.RecvRefusal(&wrs[n])
	}
	return n, nil
}

// Drain asks the pipe's holder to report Down(ReasonDrained) when the send queue is
// empty.
func (q *queuePair) Drain() {
	if p := q.out.Load(); p != nil {
		p.drainTo()
	} else if q.conn != nil {
		q.conn.drain()
	}
}

func (p *pipe) drainTo() {
	p.attention.Or(draining)
	p.kick()
}

// Break breaks both pipes and leaves the rest to their holders. Without pipes it
// flushes and ends the queues at once. A second call does nothing.
func (q *queuePair) Break(inOrder bool) {
	if q.conn == nil {
		return
	}
	why, reason := uint32(broken|lost), hw.ReasonBroken
	if inOrder {
		why, reason = broken|orderly, hw.ReasonPeer
	}
	c := q.conn // Reset may follow the end of the queues
	piped := c.breakUp()
	c.unpair(reason)
	if !piped {
		return
	}
	out, in := q.out.Load(), q.in.Load()
	in.attention.Or(why | dstClosed)
	yield.Point()
	out.attention.Or(broken | srcClosed)
	yield.Point()
	in.kick()
	out.kick()
}

// Reset gives the queue pair a new connection, unless its present one is still new.
func (q *queuePair) Reset() error {
	err := q.MayEnd("Reset")
	if err == nil && !q.conn.Unused() {
		q.begin()
	}
	return err
}

// Close frees the queue pair.
func (q *queuePair) Close() error {
	if err := q.MayEnd("QP.Close"); err != nil {
		return err
	}
	q.conn.unpair(hw.ReasonBroken)
	q.conn, q.rq = nil, nil
	q.out.Store(nil)
	q.in.Store(nil)
	q.Free()
	return nil
}
