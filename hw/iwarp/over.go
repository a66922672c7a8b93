package iwarp

import (
	"io"
	"net"
	"time"

	"godat/hw"
)

// end flushes both queues, in order, and ends those whose owner has called Break.
// It runs again when one does, or posts, and when the sender or the receiver has
// stopped.
func (l *life) end() {
	busy := l.busy.Load()
	if busy && l.job.kind == jobWrite {
		return // what it has written counts; it was interrupted, and comes back
	}
	if !busy {
		l.collect()
	}
	// Before the queues are looked at: an owner posts nothing after Break.
	a := l.attention.Load()
	l.mu.Lock()
	phase, begun, why, cause := l.phase, l.begun, l.why, l.cause
	l.mu.Unlock()
	if phase == telling {
		return
	}
	if begun {
		l.complete()
		l.letLoose()
		why, cause = l.abandoned(why, cause)
	}
	if phase == connected && a&closed == 0 && !l.saidDown {
		l.saidDown = true
		l.facts.Down(why, l.addressed(cause))
	}
	// The receiver may be in the middle of a receive, or of a read's response.
	gone := a&idleRecv != 0
	if gone || l.fetching() == 0 {
		l.flushSends()
		if a&closed != 0 && !l.sqEnded {
			l.sqEnded = true
			l.finish(l.qp.cfg.SendSink, l.qp.cfg.SendEnd)
		}
	}
	if gone {
		l.flushRecvs()
		if a&closed != 0 && !l.rqEnded {
			l.rqEnded = true
			l.dev.dropLife(l)
			l.finish(l.qp.cfg.RecvSink, l.qp.cfg.RecvEnd)
		}
	}
	if begun && !busy && !l.undertaken {
		l.undertaken = true
		l.give(jobEnd)
	}
}

// letLoose takes from the outbox what the peer still has to get, so that no
// memory is touched any more.
func (l *life) letLoose() {
	if l.tx.loose {
		return
	}
	l.tx.loose = true
	if !l.tx.finished && !l.tx.mute {
		l.tx.tail, _ = l.appendEnd(nil, l.term)
	}
	l.out.release()
}

// finish reports a queue's last completion. The owner may reset or close the
// queue pair as soon as it has both.
func (l *life) finish(sink hw.Sink, id uint64) {
	l.qp.leaving.Add(1)
	defer l.qp.leaving.Add(-1)
	l.ends.Add(1)
	l.wcs[0] = hw.WC{ID: id, Op: hw.OpEnd}
	sink.Complete(l.wcs[:1])
}

func (l *life) flushSends() {
	t, q, n := &l.tx, l.sq, 0
	for t.head != q.Tail.Load() {
		wr := &q.Slots[t.head&q.Mask]
		if wr.Op == hw.OpBind {
			l.unbind(wr.Bind)
		}
		l.wcs[n] = hw.WC{ID: wr.ID, Status: l.fate(wr), Op: wr.Op}
		n++
		t.head++
		if n == batch || t.head == q.Tail.Load() {
			q.Freed.Store(t.head)
			l.qp.cfg.SendSink.Complete(l.wcs[:n])
			n = 0
		}
	}
}

// fate is how the oldest request of the send queue ends: flushed, unless it is
// the one that something was said about. One request's fate is its own.
func (l *life) fate(wr *hw.SendWR) hw.Status {
	t := &l.tx
	if l.tx.doomed {
		return hw.StatusFlushed
	}
	status := hw.StatusFlushed
	switch r := l.sq.reads[t.head&l.sq.Mask]; {
	case t.failed && t.head == t.failAt:
		status = t.failStatus
	case t.head >= t.next && !(t.active && !t.cur.response && t.cur.slot == t.head):
		// not begun
	case wr.Op == hw.OpBind:
	case r != 0 && r == l.verdict.read:
		status = l.verdict.status
	case r == 0 && l.verdict.other != 0 && l.verdict.op.Has(wr.Op):
		status = l.verdict.other
	}
	l.tx.doomed = status != hw.StatusFlushed
	return status
}

// flushRecvs flushes what the queue pair has of receives: of a shared queue only
// the one that a message has begun to fill.
func (l *life) flushRecvs() {
	x, q, n := &l.rx, l.rq, 0
	if l.qp.srq != nil && x.open {
		x.open = false
		l.wcs[0] = hw.WC{ID: x.drawn.ID, QP: l.qp.cfg.Number, Status: hw.StatusFlushed, Op: hw.OpRecv}
		l.qp.cfg.RecvSink.Complete(l.wcs[:1])
	}
	for x.head != q.tail.Load() {
		wr := &q.slots[x.head&q.mask]
		l.wcs[n] = hw.WC{ID: wr.ID, Status: hw.StatusFlushed, Op: hw.OpRecv}
		n++
		x.head++
		if n == batch || x.head == q.tail.Load() {
			q.freed.Store(x.head)
			l.qp.cfg.RecvSink.Complete(l.wcs[:n])
			n = 0
		}
	}
}

// undertake buries the connection: the peer gets what it has still to get, then
// the end of the stream, and when it has answered that, or time is up, the
// connection is closed.
func (l *life) undertake() {
	linger := l.dev.set.linger
	_ = l.conn.SetWriteDeadline(time.Now().Add(linger))
	if len(l.tx.tail) > 0 {
		_, _ = l.conn.Write(l.tx.tail)
	}
	if !l.tx.finished {
		l.shut()
	}
	<-l.rxDone
	_ = l.conn.Close()
}

// shut closes our half, or all if the connection has no halves; nothing is lost
// then, since such a connection has no buffer.
func (l *life) shut() {
	if h, ok := l.conn.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
		return
	}
	_ = l.conn.Close()
}

// closeHalf ends a drain: the peer answers with the end of its stream, or with a
// Terminate if something went wrong there.
func (l *life) closeHalf() {
	l.attention.Or(finSent)
	l.limitWrite(true)
	l.shut()
	l.bound()
}

// bound limits the time that the receiver has left.
func (l *life) bound() {
	l.mu.Lock()
	l.attention.Or(bounded)
	if !l.dead {
		_ = l.conn.SetReadDeadline(time.Now().Add(l.dev.set.linger))
	}
	l.mu.Unlock()
}

// limitWrite bounds what the sender does next, or lifts the bound. After die its
// deadlines count.
func (l *life) limitWrite(on bool) {
	var t time.Time
	if on {
		t = time.Now().Add(l.dev.set.stall)
	}
	l.mu.Lock()
	if !l.dead {
		_ = l.conn.SetWriteDeadline(t)
	}
	l.mu.Unlock()
}

// sink reads to the end of the stream, or until time is up.
func (l *life) sink() {
	l.mu.Lock() // die has set its deadlines
	conn := l.conn
	l.mu.Unlock()
	_ = conn.SetReadDeadline(time.Now().Add(l.dev.set.linger))
	_, _ = io.Copy(io.Discard, struct{ io.Reader }{conn})
}

// isTimeout reports whether a deadline has passed.
func isTimeout(err error) bool {
	ne, ok := err.(net.Error)
	return ok && ne.Timeout()
}
