package line

import (
	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
	"godat/internal/release"
	"godat/internal/yield"
)

// Complete is stage 6: it takes completions from the provider; only providers call it.
//
// Until ESTABLISHED is announced, completions wait in the detour, so that a program
// that watches one dispatcher sees the connection before the data.
func (q *Queue) Complete(wcs []hw.WC) {
	if len(wcs) == 1 {
		wc := &wcs[0]
		if wc.Status == hw.StatusSuccess && wc.Op <= hw.OpRecv && wc.Flags&^hw.WCSolicited == 0 && wc.QP == 0 {
			q.CompleteOne(wc.ID, wc.Op, wc.Len, wc.Flags)
			return
		}
	}
	q.completeArray(wcs)
}

// completeArray is Complete of what CompleteOne does not take.
func (q *Queue) completeArray(wcs []hw.WC) {
	if q.kept != 0 {
		q.Flush()
	}
	if q.watched.Load()&detour != 0 && q.wait(wcs) {
		return
	}
	q.complete(wcs)
}

// CompleteOne takes the success of a plain operation from the provider. Most
// completions are events of an operation that is neither suppressed nor unsignalled;
// their way is in one piece.
func (q *Queue) CompleteOne(id uint64, op hw.Op, n uint32, flags hw.WCFlags) {
	if flags == hw.WCMore {
		q.keep(id, op, n)
		return
	}
	r := q.retired.Load()
	s := &q.slots[uint32(id)&q.mask]
	to := s.to
	if s.odd(op)|(uint32(id)^r)&q.mask|q.watched.Load()|uint32(flags) != 0 || to == nil {
		q.completeOdd(id, op, n, flags&^hw.WCMore)
		return
	}
	q.completer.Acquire()
	if m := &q.moved; op == q.plain { // count, here, to save a call
		release.Count(&m.octets, uint64(n))
		release.Count(&m.operations, 1)
	} else {
		q.box.cold.countOther(op, n)
	}
	if ring := to.Ring(); ring != nil {
		cell, at := ring.Claim()
		delivery.Success(&cell.Value, q.box.source, s.cookie.Load(), op, n)
		release.Uint32(&q.retired, (r+1)&ticketMask)
		yield.Point()
		cell.Publish(at)
		to.Note()
		to.Flush()
	} else if ev := q.lane.Claim(to); ev != nil {
		ev.Op, ev.Length, ev.Cookie = op, n, s.cookie.Load()
		release.Uint32(&q.retired, (r+1)&ticketMask)
		yield.Point()
		q.lane.Send()
	} else {
		cookie := s.cookie.Load()
		release.Uint32(&q.retired, (r+1)&ticketMask)
		yield.Point()
		to.PutSuccess(&q.lane, q.box.source, cookie, op, n)
	}
	q.completer.Release()
}

// odd is not 0 if the success of op is not one of the slot's that has an event like most.
func (s *slot) odd(op hw.Op) uint32 {
	return uint32(s.op^op) | uint32(s.flags&(hw.Suppress|hw.Unsignalled))
}

// completeOdd is CompleteOne of what is not like most.
func (q *Queue) completeOdd(id uint64, op hw.Op, n uint32, flags hw.WCFlags) {
	i := uint32(id) & q.mask
	if s := &q.slots[i]; s.op == op && s.flags&hw.Suppress != 0 && q.watched.Load()|q.kept == 0 {
		q.completer.Acquire()
		r := q.retired.Load()
		q.retired.Store(q.passTo(r, (r+(i-r)&q.mask+1)&ticketMask))
		q.completer.Release()
		return
	}
	q.completeArray([]hw.WC{{ID: id, Op: op, Len: n, Flags: flags}})
}

// complete delivers completions; consecutive events for the same queue are
// delivered together.
func (q *Queue) complete(wcs []hw.WC) {
	q.completer.Acquire()
	if q.shared != nil {
		q.countShared(wcs)
	}
	const together = 16
	var (
		evs [together]event.Event
		n   int
		to  *delivery.Queue
	)
	r := q.retired.Load()
	for i := range wcs {
		var next *delivery.Queue
		ended := wcs[i].ID == q.endID
		switch {
		case ended:
		case wcs[i].Op == hw.OpMark && wcs[i].ID == q.box.unreported.id:
			r = q.box.unreported.passMark(q, r)
		case q.shared != nil:
			next = q.describeShared(&evs[n], &wcs[i])
		default:
			r, next = q.describe(&evs[n], &wcs[i], r)
		}
		if next == nil && !ended {
			continue
		}
		if n > 0 && (next != to || n == together-1) {
			q.retired.Store(r)
			to.PutAll(evs[:n])
			to.Flush()
			evs[0] = evs[n]
			n = 0
		}
		if ended {
			q.retired.Store(r)
			q.endInBand()
			return
		}
		to = next
		n++
	}
	q.retired.Store(r)
	if n > 0 {
		to.PutAll(evs[:n])
		to.Flush()
	}
	q.completer.Release()
}

// describe makes the event of wc and returns the queue that takes it, or nil when
// there is none to deliver. It retires the silent successes before wc, and returns
// the new value of retired. Its caller stores that before it delivers the event: a
// program that sees the event may post again at once.
func (q *Queue) describe(ev *event.Event, wc *hw.WC, r uint32) (retired uint32, to *delivery.Queue) {
	i := uint32(wc.ID) & q.mask
	if i != r&q.mask {
		r = q.passTo(r, r+(i-r)&q.mask)
	}
	retired = (r + 1) & ticketMask
	s := &q.slots[i]
	to, flags := s.to, s.flags
	q.countReport(s.op, wc)
	if wc.Status == hw.StatusSuccess && flags&hw.Suppress != 0 || to == nil {
		if s.op == hw.OpBind {
			q.binds.of(i).end(wc.Status)
		}
		if to != nil {
			if to.HearsSuccesses() {
				to.Suppressed(q.box.source, s.cookie.Load())
			}
			to.Release(1)
		}
		return retired, nil
	}
	if q.watched.Load()&measured != 0 && wc.Status == hw.StatusSuccess {
		q.box.cold.owner.Took(s.posted, to)
		s.posted = 0
	}
	// Field by field: the compiler builds a literal elsewhere and copies it in
	// wider pieces than it was written in, and the processor stalls on those loads.
	ev.Number, ev.Status, ev.Op, ev.Flags = event.DTOCompletion, wc.Status, s.op, 0
	ev.Length, ev.Key, ev.Cookie = 0, 0, s.cookie.Load()
	ev.Source, ev.Data = q.box.source, nil
	if s.op > hw.OpRecv {
		q.extendedEvent(ev, i)
	}
	if wc.Status == hw.StatusSuccess {
		ev.Length = wc.Len
		if flags&hw.Unsignalled != 0 {
			ev.Flags = event.Silent
		}
		if s.op == hw.OpRecv && (wc.Flags != 0 || q.watched.Load()&solicitedOnly != 0) {
			q.received(ev, wc)
		}
	} else if wc.Status == hw.StatusFlushed {
		q.box.explain(ev)
	}
	return retired, to
}

// passTo retires the suppressed requests from ticket r on up to a ticket, which it
// returns. They succeeded.
func (q *Queue) passTo(r, ticket uint32) uint32 {
	var to *delivery.Queue
	n := 0 // places of to
	for ; (ticket-r)&ticketMask != 0; r = (r + 1) & ticketMask {
		s := q.slot(r)
		octets := uint32(0)
		for _, sge := range q.segments(r, int(s.nseg)) {
			octets += sge.Len
		}
		q.count(s.op, octets)
		if s.to != to {
			if n != 0 {
				to.Release(n)
			}
			to, n = s.to, 0
		}
		if to == nil {
			continue
		}
		if n++; to.HearsSuccesses() {
			to.Suppressed(q.box.source, s.cookie.Load())
		}
	}
	if n != 0 {
		to.Release(n)
	}
	return r
}

// endInBand handles the queue's last completion. A request that has not completed
// by now was suppressed and succeeded. From here on the token's holder is the
// completer.
func (q *Queue) endInBand() {
	q.completer.Check()
	q.passTo(q.retired.Load(), q.next)
	q.retired.Store(q.next)
	q.lane.Leave()
	q.completer.Release()
	q.box.Tell(q.endInput)
}

// flushNext completes the next published post as flushed. The provider has nothing
// of the queue any more, so the token's holder is the completer.
func (q *Queue) flushNext() {
	q.box.Token.Check()
	t := q.next
	q.next = (t + 1) & ticketMask
	if q.prompt {
		q.handOn()
	}
	q.complete([]hw.WC{{ID: q.id | uint64(t&q.mask), Status: hw.StatusFlushed}})
}

// wait puts completions aside until ESTABLISHED is announced. A peer sends only
// after it has the accept, so a success also tells the machine that the connection
// is up.
func (q *Queue) wait(wcs []hw.WC) bool {
	q.mu.Lock()
	if q.watched.Load()&detour == 0 {
		q.mu.Unlock()
		return false
	}
	q.waiting = append(q.waiting, wcs...)
	q.mu.Unlock()
	for i := range wcs {
		if wcs[i].Status == hw.StatusSuccess && wcs[i].ID != q.endID {
			q.box.Tell(TellFirstData)
			break
		}
	}
	return true
}

// endDetour delivers what waited and ends the detour for later completions. What comes meanwhile still waits, so the
// holder is the completer. It delivers without mu, because a function that gets events may look at the queue.
func (q *Queue) endDetour() {
	q.box.Token.Check()
	for q.watched.Load()&detour != 0 {
		q.mu.Lock()
		wcs := q.waiting
		q.waiting = nil
		if len(wcs) == 0 {
			q.watched.And(^detour)
			q.mu.Unlock()
			return
		}
		q.mu.Unlock()
		q.complete(wcs)
	}
}
