package loop

import (
	"net"
	"slices"

	"godat/hw"
	"godat/hw/internal/soft"
)

// The phases that only loop has. From Connected on the pipes keep the state, also of the end.
const (
	waiting = soft.Connected + 1 + iota // paired, and the peer has not paired yet
	ended                               // without ever being connected
)

// connection is one life of a queue pair: from NewQP or Reset to the OpEnd of both
// queues, with one attempt to connect. Each connection has queues of its own, because
// the pipes of one that is over at this end may still flush the other end.
type connection struct {
	// Immutable.
	qp    *queuePair
	facts hw.Facts
	sq    *soft.SendQueue
	rq    *recvQueue

	// Set by the owner's call that connects.
	local  net.Addr
	paired bool // by Pair: sends may come before the pipes

	mark *mark // the owner writes it before it sets the pipe's bit; nil before the first

	pair *pairEnd // guarded by the lock of pairs; nil if nobody asked for the values

	soft.Life      // dead since Break
	draining  bool // Drain was called before there were pipes; guarded by Mu
}

func newConnection(q *queuePair) *connection {
	c := &connection{
		qp:    q,
		facts: q.Cfg.Facts,
		sq:    new(soft.SendQueue),
		rq:    newRecvQueue(q.Cfg.RecvDepth),
	}
	c.Begin(&q.QP)
	c.sq.Init(q.Cfg.SendDepth)
	return c
}

// refuse ends an attempt that nothing has ended yet.
func (c *connection) refuse(why hw.Reason, private []byte, cause *hw.Cause) {
	c.stop(soft.Connecting, func() { c.facts.Refused(why, private, cause) })
}

// stop reports the end of a connection without pipes that is still in the phase from. A
// Break that comes meanwhile leaves it to stop to end the queues: after the queues have
// ended nothing of this connection may be reported.
func (c *connection) stop(from soft.Phase, report func()) {
	c.Mu.Lock()
	if c.Phase != from {
		c.Mu.Unlock()
		return
	}
	c.Phase = soft.Announcing
	c.Mu.Unlock()
	report()
	c.Mu.Lock()
	c.Phase = soft.Refused
	finish := c.Dead
	if finish {
		c.Phase = ended
	}
	c.Mu.Unlock()
	if finish {
		c.finish()
	}
}

// breakUp records a call of Break, and reports whether there are pipes to break.
// Without pipes it ends the queues, or leaves that to stop.
func (c *connection) breakUp() (piped bool) {
	c.Mu.Lock()
	again := c.Dead
	c.Dead = true
	was := c.Phase
	if was != soft.Announcing && was != soft.Connected {
		c.Phase = ended
	}
	c.Mu.Unlock()
	switch {
	case again:
		return false
	case was == soft.Connected:
		return true
	case was != soft.Announcing:
		c.finish()
	}
	return false
}

// finish flushes and ends the queues of a connection that had no pipes. No other
// goroutine touches the queues: an answer that comes now finds the phase ended.
func (c *connection) finish() {
	cfg := &c.qp.Cfg
	var wcs []hw.WC
	for i := range c.sq.Tail.Load() {
		wcs = append(wcs, flushedSend(&c.sq.Slots[i]))
	}
	if len(wcs) > 0 {
		cfg.SendSink.Complete(wcs)
	}
	wcs = wcs[:0]
	for i := range c.rq.tail.Load() {
		wcs = append(wcs, hw.WC{ID: c.rq.slots[i].id, Status: hw.StatusFlushed, Op: hw.OpRecv})
	}
	for some := range slices.Chunk(wcs, maxScratch) {
		cfg.RecvSink.Complete(some)
	}
	c.end(cfg.RecvSink, cfg.RecvEnd)
	c.end(cfg.SendSink, cfg.SendEnd)
}

// end reports a queue's OpEnd. The owner may reset or close the queue pair as soon as
// it has seen the OpEnd of both queues, so end counts first.
func (c *connection) end(sink hw.Sink, id uint64) {
	c.Ends.Add(1)
	sink.Complete([]hw.WC{{ID: id, Op: hw.OpEnd}})
}
