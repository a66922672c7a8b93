package iwarp

import (
	"runtime"
	"sync/atomic"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/internal/yield"
)

// queuePair is a QP. Its owner makes the calls one at a time.
type queuePair struct {
	// Immutable.
	soft.QP
	dev *device
	srq *soft.SRQ // may be nil
	cfg hw.QPConfig

	// endReports counts the calls that report the end of a queue and have not
	// returned. The next connection completes nothing before they have.
	endReports atomic.Int32

	conn *connection // owned by the queue pair's owner; nil when closed
}

// awaitEndReports waits until the calls that endReports counts have returned. They never
// block, and cannot wait for the caller, which is the goroutine of a new connection.
func (q *queuePair) awaitEndReports() {
	for q.endReports.Load() != 0 {
		runtime.Gosched()
	}
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
	q := &queuePair{QP: soft.QP{Zone: z}, dev: d, cfg: cfg}
	if cfg.SRQ != nil {
		q.srq, _ = cfg.SRQ.(*soft.SRQ)
		if err := q.srq.Attach(op, &d.Device, z); err != nil {
			z.Unuse()
			return nil, err
		}
		q.cfg.RecvDepth = 0
	}
	if err := d.Use(op, soft.QPs); err != nil {
		q.srq.Detach()
		z.Unuse()
		return nil, err
	}
	q.conn = newConnection(q)
	return q, nil
}

// notSendable holds the offered operations that PostSend never takes.
const notSendable = 1<<hw.OpRecv | 1<<hw.OpRecvImm | 1<<hw.OpRecvInvalidate

// PostSend enqueues the requests. If the token is free, it also sends as much as the
// socket takes.
func (q *queuePair) PostSend(wrs []hw.SendWR) (int, error) {
	const op = "iwarp.PostSend"
	c := q.conn
	if c == nil {
		return 0, gone(op)
	}
	if !c.up.Load() {
		c.mu.Lock()
		defer c.mu.Unlock()
		return 0, hw.Errorf(op, hw.InvalidState, c.state(), "the queue pair is not connected")
	}
	n := len(wrs)
	var err error
	for i := range wrs {
		wr := &wrs[i]
		if !c.agreed.ops.Has(wr.Op) || len(wr.SGL) > q.cfg.SendSegments || wr.Op == hw.OpBind && q.dev.CheckBind(wr.Bind) != nil {
			n, err = i, c.refusal(wr)
			break
		}
	}
	if k := c.send.sq.push(wrs[:n]); k < n {
		n, err = k, full(op, q.cfg.SendDepth)
	}
	soft.SpendBinds(wrs[:n])
	yield.Point()
	if n > 0 {
		c.kick(byPoster)
	}
	return n, err
}

// refusal is the error of a request that PostSend refuses.
func (c *connection) refusal(wr *hw.SendWR) error {
	const op = "iwarp.PostSend"
	switch {
	case !c.agreed.ops.Has(wr.Op):
		return hw.Errorf(op, hw.ModelNotSupported, hw.NoSubtype, "%v on this connection", wr.Op)
	case len(wr.SGL) > c.qp.cfg.SendSegments:
		return hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "%d segments; the queue pair was made for %d", len(wr.SGL), c.qp.cfg.SendSegments)
	}
	return c.dev.CheckBind(wr.Bind)
}

// flushLate has receives flushed that were posted after the receiver has left a broken
// connection. The tail is published before attention is loaded; the receiver sets idleRecv
// before its kick has the queue flushed. So one of the two sees the other.
func (c *connection) flushLate() {
	yield.Point()
	if c.attention.Load()&(broken|idleRecv) == broken|idleRecv {
		c.kick(byPoster)
	}
}

// PostRecv enqueues receives.
func (q *queuePair) PostRecv(wrs []hw.RecvWR) (int, error) {
	const op = "iwarp.PostRecv"
	c := q.conn
	if c == nil {
		return 0, gone(op)
	}
	if q.srq != nil {
		return 0, hw.Errorf(op, hw.InvalidState, hw.StateSRQInUse, "receives come from the shared receive queue")
	}
	n := c.recv.place.rq.push(wrs, q.cfg.RecvSegments)
	c.flushLate()
	if n == len(wrs) {
		return n, nil
	}
	if s := len(wrs[n].SGL); s > q.cfg.RecvSegments {
		return n, hw.Errorf(op, hw.InvalidParameter, hw.NoSubtype, "%d segments; the queue pair was made for %d", s, q.cfg.RecvSegments)
	}
	return n, full(op, q.cfg.RecvDepth)
}

func full(op string, depth int) error {
	return hw.Errorf(op, hw.InsufficientResources, hw.ResourceCredits, "the queue, of depth %d, is full", depth)
}

func gone(op string) error {
	return hw.Errorf(op, hw.InvalidHandle, hw.HandleEP, "the queue pair is closed")
}

// Drain lets the connection close its sending half when all posted requests have
// completed, and report Down(ReasonDrained) when the peer has closed its half or the time
// linger is over.
func (q *queuePair) Drain() {
	if c := q.conn; c != nil && c.up.Load() {
		c.attention.Or(draining)
		c.right.Reclaim() // the peer's end is awaited
		c.kick(byPoster)
	}
}

// Break ends the connection. A second call does nothing.
func (q *queuePair) Break(orderly bool) {
	if q.conn != nil {
		q.conn.breakOff(orderly)
	}
}

// Watcher implements [hw.Watchable].
func (q *queuePair) Watcher() hw.Watcher {
	if q.conn == nil {
		return nil
	}
	return &q.conn.recv
}

// Reset gives the queue pair a new connection, unless its present one is still new.
func (q *queuePair) Reset() error {
	const op = "iwarp.Reset"
	c := q.conn
	switch {
	case c == nil:
		return gone(op)
	case c.ended():
		q.conn = newConnection(q)
	case !c.unused():
		return c.notOver(op)
	}
	return nil
}

// Close frees the queue pair.
func (q *queuePair) Close() error {
	const op = "iwarp.QP.Close"
	c := q.conn
	switch {
	case c == nil:
		return gone(op)
	case !c.ended() && !c.unused():
		return c.notOver(op)
	}
	q.conn = nil
	q.srq.Detach()
	q.dev.Unuse(soft.QPs)
	q.Zone.Unuse()
	return nil
}

func (c *connection) notOver(op string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return hw.Errorf(op, hw.InvalidState, c.state(), "the queues of the queue pair have not both ended")
}
