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
	cfg hw.QPConfig
}

// NewQP makes a queue pair. It fails with INVALID_PARAMETER if a value is beyond the
// device's limits.
func (d *device) NewQP(cfg hw.QPConfig) (hw.QP, error) {
	const op = "NewQP"
	if err := d.CheckQP(op, &cfg); err != nil {
		return nil, err
	}
	z, err := d.UseZone(op, cfg.Zone)
	if err != nil {
		return nil, err
	}
	srq, err := d.useSRQ(op, cfg.SRQ, z)
	if err != nil {
		z.Unuse()
		return nil, err
	}
	if err := d.Use(op, soft.QPs); err != nil {
		srq.unuse()
		z.Unuse()
		return nil, err
	}
	q := &queuePair{QP: soft.QP{Zone: z}, dev: d, srq: srq, cfg: cfg, segments: cfg.RecvSegments}
	if srq != nil {
		q.segments = -1
	}
	q.begin()
	return q, nil
}

// recvDepth is the depth of the queue pair's own receive queue.
func (q *queuePair) recvDepth() int {
	if q.srq != nil {
		return 0
	}
	return q.cfg.RecvDepth
}

// begin makes a new connection.
func (q *queuePair) begin() {
	q.conn = newConnection(q)
	q.rq = q.conn.rq
}

// sendable holds the operations that PostSend takes.
var sendable = offered &^ hw.Ops(hw.OpRecv, hw.OpRecvImm, hw.OpRecvInvalidate)

// refuses reports whether PostSend must refuse a request.
func (q *queuePair) refuses(wr *hw.SendWR) bool {
	return !sendable.Has(wr.Op) || len(wr.SGL) > q.cfg.SendSegments || wr.Op == hw.OpBind && q.dev.CheckBind(wr.Bind) != nil
}

// refusal is the error of a request that PostSend refuses.
func (q *queuePair) refusal(wr *hw.SendWR) error {
	const op = "loop.PostSend"
	switch {
	case !sendable.Has(wr.Op):
		return hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "%v", wr.Op)
	case len(wr.SGL) > q.cfg.SendSegments:
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "%d segments; the queue pair was made for %d", len(wr.SGL), q.cfg.SendSegments)
	}
	return q.dev.CheckBind(wr.Bind)
}

func full(op string, depth int) error {
	return hw.Errorf(op, hw.InsufficientResources, hw.ResourceCredits, "the queue, of depth %d, is full", depth)
}

func gone(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandleEP, "the queue pair is closed")
}

// PostSend executes the requests if it can take the pipe, and enqueues the rest. When
// the pipe is free and the attention word is 0, the send queue is empty, so the order
// is kept: the owner kicks the pipe after each enqueue, and no holder lets go before
// the queued requests are done, stalled or flushed.
func (q *queuePair) PostSend(wrs []hw.SendWR) (int, error) {
	p := q.out.Load()
	if p == nil {
		return 0, q.unconnected()
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

func (q *queuePair) unconnected() error {
	const op = "loop.PostSend"
	c := q.conn
	if c == nil {
		return gone(op)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return hw.Errorf(op, hw.InvalidState, c.state(), "the queue pair is not connected")
}

// enqueue appends requests to the send queue.
func (q *queuePair) enqueue(wrs []hw.SendWR) (int, error) {
	take := wrs
	var refusal error
	binds := false
	for i := range wrs {
		if q.refuses(&wrs[i]) {
			take, refusal = wrs[:i], q.refusal(&wrs[i])
			break
		}
		binds = binds || wrs[i].Op == hw.OpBind
	}
	n := q.conn.sq.Push(take)
	if n < len(take) {
		refusal = full("loop.PostSend", q.cfg.SendDepth)
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
		return 0, gone("loop.PostRecv")
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
		return n, q.recvRefusal(&wrs[n])
	}
	return n, nil
}

// recvRefusal says why a receive was not taken.
func (q *queuePair) recvRefusal(wr *hw.RecvWR) error {
	const op = "loop.PostRecv"
	if q.srq != nil {
		return hw.Errorf(op, hw.InvalidState, hw.StateSRQInUse, "receives come from the shared receive queue")
	}
	if n := len(wr.SGL); n > q.segments {
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "%d segments; the queue was made for %d", n, q.segments)
	}
	return full(op, q.cfg.RecvDepth)
}

// Drain asks the pipe's holder to report Down(ReasonDrained) when the send queue is
// empty.
func (q *queuePair) Drain() {
	if p := q.out.Load(); p != nil {
		p.attention.Or(draining)
		p.kick()
	}
}

// Break breaks both pipes and leaves the rest to their holders. Without pipes it
// flushes and ends the queues at once. A second call does nothing.
func (q *queuePair) Break(inOrder bool) {
	if q.conn == nil || !q.conn.breakUp() {
		return
	}
	out, in := q.out.Load(), q.in.Load()
	why := uint32(broken | lost)
	if inOrder {
		why = broken | orderly
	}
	in.attention.Or(why | dstClosed)
	yield.Point()
	out.attention.Or(broken | srcClosed)
	yield.Point()
	in.kick()
	out.kick()
}

// Reset gives the queue pair a new connection, unless its present one is still new.
func (q *queuePair) Reset() error {
	const op = "loop.Reset"
	c := q.conn
	switch {
	case c == nil:
		return gone(op)
	case c.over():
		q.out.Store(nil)
		q.in.Store(nil)
		q.begin()
	case !c.pristine():
		return c.notOver(op)
	}
	return nil
}

// Close frees the queue pair.
func (q *queuePair) Close() error {
	const op = "loop.QP.Close"
	c := q.conn
	switch {
	case c == nil:
		return gone(op)
	case !c.over() && !c.pristine():
		return c.notOver(op)
	}
	q.conn, q.rq = nil, nil
	q.out.Store(nil)
	q.in.Store(nil)
	q.srq.unuse()
	q.dev.Unuse(soft.QPs)
	q.Zone.Unuse()
	return nil
}

func (c *connection) notOver(op string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return hw.Errorf(op, hw.InvalidState, c.state(), "the queues of the queue pair have not both ended")
}
