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

	// endReports counts the calls that report the end of a queue and have not
	// returned. The next connection completes nothing before they have.
	endReports atomic.Int32

	// Nil when closed. The owner's Reset and Close write it; Watcher, Flow and Trace, which any goroutine may call, not
	// at the same time, read it.
	conn *connection
}

// awaitEndReports waits until the calls that endReports counts have returned. They never
// block, and cannot wait for the caller, which is the goroutine of a new connection.
func (q *queuePair) awaitEndReports() {
	for q.endReports.Load() != 0 {
		runtime.Gosched()
	}
}

// NewQP makes a queue pair.
func (d *device) NewQP(cfg hw.QPConfig) (hw.QP, error) {
	q := &queuePair{dev: d}
	q.srq, _ = cfg.SRQ.(*soft.SRQ)
	if err := q.Open(&d.Device, &cfg, q.srq); err != nil {
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
	const op = "PostSend"
	c := q.conn
	if c == nil {
		return 0, q.dev.Gone(op)
	}
	if !c.up.Load() {
		return 0, c.Invalid(op, "the queue pair is not connected")
	}
	n := len(wrs)
	var err error
	for i := range wrs {
		if err = q.CheckSend(&wrs[i], c.ops); err != nil {
			n = i
			break
		}
	}
	if k := c.send.sq.push(wrs[:n]); k < n {
		n, err = k, q.Full(op, q.Cfg.SendDepth)
	}
	soft.SpendBinds(wrs[:n])
	yield.Point()
	if n > 0 {
		c.kick(byPoster)
	}
	return n, err
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
	c := q.conn
	if c == nil {
		return 0, q.dev.Gone("PostRecv")
	}
	n := 0
	if q.srq == nil {
		n = c.recv.place.rq.push(wrs, q.Cfg.RecvSegments)
		c.flushLate()
	}
	if n < len(wrs) {
		return n, q.RecvRefusal(&wrs[n])
	}
	return n, nil
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
	return &q.conn.recv.parties
}

// Reset gives the queue pair a new connection, unless its present one is still new.
func (q *queuePair) Reset() error {
	err := q.MayEnd("Reset")
	if err == nil && !q.conn.Unused() {
		q.conn = newConnection(q)
	}
	return err
}

// Close frees the queue pair.
func (q *queuePair) Close() error {
	err := q.MayEnd("QP.Close")
	if err == nil {
		q.conn = nil
		q.Free()
	}
	return err
}
