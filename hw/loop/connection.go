package loop

import (
	"net"
	"sync"
	"sync/atomic"

	"godat/hw"
	"godat/hw/internal/soft"
)

// phase is the stage that a connection is in.
type phase uint8

const (
	unconnected phase = iota
	connecting        // asked, or answering, or pairing
	waiting           // paired, and the peer has not paired yet
	refusing          // the end is being reported, which came before any pipe
	refused
	connected // and from here on the pipes keep the state, also of the end
	ended     // without ever being connected
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

	pair *pairEnd // guarded by the lock of pairs; nil if nobody asked for the values

	// mu decides whether the answer or Break ends an attempt to connect. No callback
	// runs under it.
	mu       sync.Mutex
	phase    phase
	broken   bool // Break was called
	draining bool // Drain was called before there were pipes

	ends atomic.Int32 // queues that have ended
}

func newConnection(q *queuePair) *connection {
	c := &connection{
		qp:    q,
		facts: q.Cfg.Facts,
		sq:    new(soft.SendQueue),
		rq:    newRecvQueue(q.Cfg.RecvDepth),
	}
	c.sq.Init(q.Cfg.SendDepth)
	return c
}

// begin starts the attempt to connect. It fails unless the connection is new.
func (c *connection) begin(op string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != unconnected || c.broken {
		return c.qp.dev.Errorf(op, hw.InvalidState, c.state(), "the queue pair is not new or reset")
	}
	c.phase = connecting
	return nil
}

// state is the endpoint state nearest to the phase. The lock is held.
func (c *connection) state() hw.Subtype {
	switch {
	case c.broken, c.phase == refusing, c.phase == refused:
		return hw.StateEPDisconnected
	case c.phase == connecting:
		return hw.StateEPActiveConnectionPending
	case c.phase == connected, c.phase == waiting:
		return hw.StateEPConnected
	}
	return hw.StateEPUnconnected
}

// refuse ends an attempt that nothing has ended yet.
func (c *connection) refuse(why hw.Reason, private []byte, cause *hw.Cause) {
	c.stop(connecting, func() { c.facts.Refused(why, private, cause) })
}

// stop reports the end of a connection without pipes that is still in the phase from. A
// Break that comes meanwhile leaves it to stop to end the queues: after the queues have
// ended nothing of this connection may be reported.
func (c *connection) stop(from phase, report func()) {
	c.mu.Lock()
	if c.phase != from {
		c.mu.Unlock()
		return
	}
	c.phase = refusing
	c.mu.Unlock()
	report()
	c.mu.Lock()
	c.phase = refused
	finish := c.broken
	if finish {
		c.phase = ended
	}
	c.mu.Unlock()
	if finish {
		c.finish()
	}
}

// breakUp records a call of Break, and reports whether there are pipes to break.
// Without pipes it ends the queues, or leaves that to stop.
func (c *connection) breakUp() (piped bool) {
	c.mu.Lock()
	again := c.broken
	c.broken = true
	was := c.phase
	if was != refusing && was != connected {
		c.phase = ended
	}
	c.mu.Unlock()
	switch {
	case again:
		return false
	case was == connected:
		return true
	case was != refusing:
		c.finish()
	}
	return false
}

// finish flushes and ends the queues of a connection that had no pipes. No other
// goroutine touches the queues: an answer that comes now finds the phase ended.
func (c *connection) finish() {
	cfg := &c.qp.Cfg
	var wcs []hw.WC
	for head, tail := uint64(0), c.sq.Tail.Load(); head != tail; head++ {
		wcs = append(wcs, flushedSend(&c.sq.Slots[head&c.sq.Mask]))
	}
	if len(wcs) > 0 {
		cfg.SendSink.Complete(wcs)
		wcs = wcs[:0]
	}
	for head, tail := uint64(0), c.rq.tail.Load(); head != tail; head++ {
		rr := &c.rq.slots[head&c.rq.mask]
		wcs = append(wcs, hw.WC{ID: rr.id, Status: hw.StatusFlushed, Op: hw.OpRecv})
		if len(wcs) == maxScratch || head+1 == tail {
			cfg.RecvSink.Complete(wcs)
			wcs = wcs[:0]
		}
	}
	c.end(cfg.RecvSink, cfg.RecvEnd)
	c.end(cfg.SendSink, cfg.SendEnd)
}

// end reports a queue's OpEnd. The owner may reset or close the queue pair as soon as
// it has seen the OpEnd of both queues, so end counts first.
func (c *connection) end(sink hw.Sink, id uint64) {
	c.ends.Add(1)
	sink.Complete([]hw.WC{{ID: id, Op: hw.OpEnd}})
}

// over reports whether both queues have ended.
func (c *connection) over() bool { return c.ends.Load() == 2 }

// pristine reports whether the connection is new: nothing connected or broke it yet.
func (c *connection) pristine() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase == unconnected
}
