package loop

import (
	"sync"
	"sync/atomic"

	"godat/hw"
	"godat/hw/internal/soft"
)

// phase is where a connection stands.
type phase uint8

const (
	unconnected phase = iota
	connecting        // asked, or answering
	refusing          // Refused is being reported
	refused
	connected // the pipes lead it to its end
	ended     // it never was connected
)

// connection is a queue pair from NewQP or Reset to the OpEnd of both queues, with one
// attempt to connect. Each has queues of its own, since the pipes of a connection that
// is over at this end may still flush the other end.
type connection struct {
	// Immutable.
	qp    *queuePair
	facts hw.Facts
	sq    *soft.SendQueue
	rq    *recvQueue
	local Addr

	// mu decides whether the answer or Break ends an attempt to connect. No callback
	// runs under it.
	mu     sync.Mutex
	phase  phase
	broken bool // Break was called

	ends atomic.Int32 // queues that have ended
}

func newConnection(q *queuePair) *connection {
	c := &connection{
		qp:    q,
		facts: q.cfg.Facts,
		sq:    new(soft.SendQueue),
		rq:    newRecvQueue(q.recvDepth()),
	}
	c.sq.Init(q.cfg.SendDepth)
	return c
}

// begin starts the attempt to connect.
func (c *connection) begin(op string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != unconnected || c.broken {
		return hw.Errorf(op, hw.InvalidState, c.state(), "the queue pair is not new or reset")
	}
	c.phase = connecting
	return nil
}

// state is the endpoint state that comes nearest. The lock is held.
func (c *connection) state() hw.Subtype {
	switch {
	case c.broken, c.phase == refusing, c.phase == refused:
		return hw.StateEPDisconnected
	case c.phase == connecting:
		return hw.StateEPActiveConnectionPending
	case c.phase == connected:
		return hw.StateEPConnected
	}
	return hw.StateEPUnconnected
}

// refuse ends an attempt that nothing has ended yet. A Break that comes while
// the fact is being reported leaves the rest to be done here: after the queues
// have ended nothing of this connection may be reported.
func (c *connection) refuse(why hw.Reason, private []byte, cause *hw.Cause) {
	c.mu.Lock()
	if c.phase != connecting {
		c.mu.Unlock()
		return
	}
	c.phase = refusing
	c.mu.Unlock()
	c.facts.Refused(why, private, cause)
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

// breakUp notes Break. It reports whether there are pipes to break.
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

// finish flushes and ends the queues of a connection that had no pipes. Nobody else
// touches the queues: an answer that comes now finds the phase ended.
func (c *connection) finish() {
	cfg := &c.qp.cfg
	wcs := make([]hw.WC, 0, maxScratch)
	for head, tail := uint64(0), c.rq.tail.Load(); head != tail; head++ {
		wr := &c.rq.slots[head&c.rq.mask]
		wcs = append(wcs, hw.WC{ID: wr.ID, Status: hw.StatusFlushed, Op: hw.OpRecv})
		if len(wcs) == cap(wcs) || head+1 == tail {
			cfg.RecvSink.Complete(wcs)
			wcs = wcs[:0]
		}
	}
	c.end(cfg.RecvSink, wcs[:1], cfg.RecvEnd)
	c.end(cfg.SendSink, wcs[:1], cfg.SendEnd)
}

// end reports a queue's last completion. The owner may reset or close the queue
// pair as soon as it has both.
func (c *connection) end(sink hw.Sink, scratch []hw.WC, id uint64) {
	c.ends.Add(1)
	scratch[0] = hw.WC{ID: id, Op: hw.OpEnd}
	sink.Complete(scratch[:1])
}

// over reports whether both queues have ended.
func (c *connection) over() bool { return c.ends.Load() == 2 }

// pristine reports whether the connection has not begun to connect.
func (c *connection) pristine() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase == unconnected
}
