package iwarp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"godat/hw"
	"godat/hw/internal/soft"
)

// flush flushes both queues, in order, and ends each after Break. The token's holder
// runs it once the connection is over, and again after Break, a post, a job of the
// writer, and the end of the receiver.
func (c *connection) flush() {
	c.token.Check()
	busy := c.busy.Load()
	if busy && c.send.writer.job.kind == jobWrite {
		return // the interrupted writer has still to report what it has written; it then kicks the token
	}
	if !busy {
		c.send.collect()
	}
	// The load comes before the look at the queues: an owner posts nothing after Break.
	a := c.attention.Load()
	c.Mu.Lock()
	phase, begun, end, sendErr := c.Phase, c.begun, c.ending, c.sendErr
	c.Mu.Unlock()
	if phase == soft.Announcing {
		return
	}
	if begun {
		c.send.marking = false // nobody asks any more, and a queue may have ended
		c.send.complete()
		c.send.dropOutbox(end.term)
		end = c.orBroken(end, sendErr)
	}
	if phase == soft.Connected && a&closed == 0 && !c.saidDown {
		c.saidDown = true
		c.facts.Down(end.why, c.addressed(end.cause))
	}
	// The receiver may be in the middle of a receive, or of a read's response.
	gone := a&idleRecv != 0
	if gone || c.reads.outstanding() == 0 {
		c.send.flush(&end.verdict)
		if a&closed != 0 && !c.sqEnded {
			c.sqEnded = true
			c.endQueue(c.qp.Cfg.SendSink, c.qp.Cfg.SendEnd)
		}
	}
	if gone {
		c.recv.place.flush()
		if a&closed != 0 && !c.rqEnded {
			c.rqEnded = true
			c.send.present.Leave()
			c.recv.place.present.Leave()
			c.endQueue(c.qp.Cfg.RecvSink, c.qp.Cfg.RecvEnd)
		}
	}
	if begun && !busy && !c.teardownStarted {
		c.teardownStarted = true
		c.send.writer.assign(jobTeardown)
	}
}

// orBroken turns a peer's end that looks orderly into a broken connection if the peer did not
// leave in order: its process may have died. A peer of this package that leaves in order sends a farewell first. Peers of other implementations send none: they
// break the connection if they leave while work is outstanding. The system tells the first
// call that a socket has failed, and the calls after it that the stream has ended: so if
// that call was a write, its error is why.
func (c *connection) orBroken(e ending, sendErr error) ending {
	c.token.Check()
	n := c.send.sq.Tail.Load() - c.send.head // requests that have not completed
	switch {
	case e.why != hw.ReasonPeer, e.farewell:
		return e
	case lost(sendErr):
		e.why, e.cause = hw.ReasonBroken, tcpCause(sendErr)
		return e
	case n == 0 && !e.partial && !c.agreed.extended:
		return e
	}
	text := "the peer closed the connection"
	if c.agreed.extended {
		text = "the stream ended without a farewell: the peer's process was killed or has crashed, or something cut the connection: its page tells"
	}
	switch {
	case n > 0:
		text += fmt.Sprintf(", with %d requests to it outstanding", n)
	case e.partial:
		text += ", in the middle of its message"
	}
	e.why = hw.ReasonBroken
	e.cause = &hw.Cause{Layer: hw.LayerTCP, Text: text, Err: io.ErrUnexpectedEOF}
	return e
}

// endQueue reports a queue's OpEnd. The owner may reset or close the queue pair as soon
// as it has seen the OpEnd of both queues, so endQueue counts first.
func (c *connection) endQueue(sink hw.Sink, id uint64) {
	c.token.Check()
	c.qp.endReports.Add(1)
	defer c.qp.endReports.Add(-1)
	c.Ends.Add(1)
	sink.Complete([]hw.WC{{ID: id, Op: hw.OpEnd}})
}

// dropOutbox copies from the outbox the octets that the peer must still get, with term at
// their end, and drops the rest: the sender touches no memory any more.
func (s *sender) dropOutbox(term []byte) {
	s.link.token.Check()
	if s.dropped {
		return
	}
	s.dropped = true
	if t := s.link.tap.Load(); t != nil {
		t.wrote(&s.out, 0) // the writer's tail may be the first that the trace has
	}
	if !s.writer.shut && !s.writeFailed {
		s.writer.tail = s.lastOctets(term)
	}
	s.out.release()
}

// flush completes the requests that have not completed: with StatusFlushed, except for
// the one that failed at this end or for which v has another status.
func (s *sender) flush(v *verdict) {
	s.link.token.Check()
	q := s.sq
	for s.head != q.Tail.Load() {
		wcs := make([]hw.WC, min(q.Tail.Load()-s.head, batch))
		for n := range wcs {
			wr := &q.Slots[s.head&q.Mask]
			if wr.Op == hw.OpBind {
				s.unbind(wr.Bind)
			}
			wcs[n] = hw.WC{ID: wr.ID, Status: s.statusOf(wr, v), Op: wr.Op}
			s.head++
		}
		q.Freed.Store(s.head)
		s.sink.Complete(wcs)
	}
}

// statusOf is the status with which the oldest request of the send queue ends:
// StatusFlushed, unless the request failed at this end or is the one of the verdict. At
// most one request ends with another status than StatusFlushed.
func (s *sender) statusOf(wr *hw.SendWR, v *verdict) hw.Status {
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

// isTimeout reports whether a deadline of this end's has passed, or TCP has waited in vain.
func isTimeout(err error) bool {
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}

// expired reports whether a deadline of this end's has passed.
func expired(err error) bool { return isTimeout(err) && !errors.Is(err, syscall.ETIMEDOUT) }

// lost reports whether a write's error says that the socket has failed. A peer that has
// ended its stream in order may take nothing more all the same (EPIPE).
func lost(err error) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && errno != syscall.EPIPE
}
