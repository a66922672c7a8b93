package iwarp

import (
	"fmt"
	"io"
	"net"

	"godat/hw"
)

// flush flushes both queues, in order, and ends each after Break. The token's holder
// runs it once the connection is over, and again after Break, a post, a job of the
// writer, and the end of the receiver.
func (c *connection) flush() {
	c.own.Check()
	busy := c.busy.Load()
	if busy && c.send.writer.job.kind == jobWrite {
		return // what it has written counts; it was interrupted, and kicks the token
	}
	if !busy {
		c.send.collect()
	}
	// Before the queues are looked at: an owner posts nothing after Break.
	a := c.attention.Load()
	c.mu.Lock()
	phase, begun, end := c.phase, c.begun, c.ending
	c.mu.Unlock()
	if phase == announcing {
		return
	}
	if begun {
		c.send.complete()
		c.send.dropOutbox(end.term)
		end = c.judged(end)
	}
	if phase == connected && a&closed == 0 && !c.saidDown {
		c.saidDown = true
		c.facts.Down(end.why, c.addressed(end.cause))
	}
	// The receiver may be in the middle of a receive, or of a read's response.
	gone := a&idleRecv != 0
	if gone || c.reads.outstanding() == 0 {
		c.send.flush(&end.verdict)
		if a&closed != 0 && !c.sqEnded {
			c.sqEnded = true
			c.endQueue(c.qp.cfg.SendSink, c.qp.cfg.SendEnd)
		}
	}
	if gone {
		c.recv.flush()
		if a&closed != 0 && !c.rqEnded {
			c.rqEnded = true
			c.dev.removeConnection(c)
			c.endQueue(c.qp.cfg.RecvSink, c.qp.cfg.RecvEnd)
		}
	}
	if begun && !busy && !c.teardownStarted {
		c.teardownStarted = true
		c.send.writer.assign(jobTeardown)
	}
}

// judged turns a peer's end that looks orderly into what it is when work is
// outstanding: a peer whose process died. A peer of our own kind says farewell before
// it leaves in order. A program of another kind that leaves in the middle of our work
// breaks the connection, too.
func (c *connection) judged(e ending) ending {
	c.own.Check()
	n := c.send.incomplete()
	if e.why != hw.ReasonPeer || e.farewell || n == 0 && !e.partial {
		return e
	}
	text := "the peer closed the connection in the middle of its message"
	if n > 0 {
		text = fmt.Sprintf("the peer closed the connection with %d requests to it outstanding", n)
	}
	e.why = hw.ReasonBroken
	e.cause = &hw.Cause{Layer: hw.LayerTCP, Text: text, Err: io.ErrUnexpectedEOF, Found: hw.SidePeer}
	return e
}

// endQueue reports a queue's last completion. The owner may reset or close the queue
// pair as soon as it has both.
func (c *connection) endQueue(sink hw.Sink, id uint64) {
	c.own.Check()
	c.qp.endReports.Add(1)
	defer c.qp.endReports.Add(-1)
	c.ends.Add(1)
	sink.Complete([]hw.WC{{ID: id, Op: hw.OpEnd}})
}

// incomplete is how many requests have not completed.
func (s *sender) incomplete() uint64 {
	s.link.own.Check()
	return s.sq.Tail.Load() - s.head
}

// dropOutbox takes from the outbox what the peer still has to get, with term as its
// end, and lets the rest go: no memory is touched any more.
func (s *sender) dropOutbox(term []byte) {
	s.link.own.Check()
	if s.dropped {
		return
	}
	s.dropped = true
	if !s.writer.shut && !s.writeFailed {
		s.writer.tail, _ = s.appendEnd(nil, term)
	}
	s.out.release()
}

// flush flushes the requests that have not completed. v says which of them ends with
// more than that.
func (s *sender) flush(v *verdict) {
	s.link.own.Check()
	q, n := s.sq, 0
	for s.head != q.Tail.Load() {
		wr := &q.Slots[s.head&q.Mask]
		if wr.Op == hw.OpBind {
			s.unbind(wr.Bind)
		}
		s.wcs[n] = hw.WC{ID: wr.ID, Status: s.fate(wr, v), Op: wr.Op}
		n++
		s.head++
		if n == batch || s.head == q.Tail.Load() {
			q.Freed.Store(s.head)
			s.link.qp.cfg.SendSink.Complete(s.wcs[:n])
			n = 0
		}
	}
}

// fate is how the oldest request of the send queue ends: flushed, unless it failed
// here, or is the one that the verdict is on. One request at most has such a fate.
func (s *sender) fate(wr *hw.SendWR, v *verdict) hw.Status {
	if s.doomed {
		return hw.StatusFlushed
	}
	status := hw.StatusFlushed
	switch r := s.sq.reads[s.head&s.sq.Mask]; {
	case s.failed && s.head == s.failAt:
		status = s.failStatus
	case s.head >= s.next && !(s.active && !s.cur.response && s.cur.slot == s.head):
		// not begun
	case wr.Op == hw.OpBind:
	case r != 0 && r == v.read:
		status = v.status
	case r == 0 && v.other != 0 && v.op.Has(wr.Op):
		status = v.other
	}
	s.doomed = status != hw.StatusFlushed
	return status
}

// isTimeout reports whether a deadline has passed.
func isTimeout(err error) bool {
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}
