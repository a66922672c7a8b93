package line

import "godat/hw"

// step is stage 5: it hands on receives first, then requests, then handles inputs. It returns what
// is left of the budget. It asserts the owner once for the methods below that run
// for each post, because in race builds each check costs microseconds.
//
// The step reads an input before it drains the queues, and handles it after: what
// was posted before the input was told precedes it. To handle an input the step
// ignores the budget; otherwise posters without a pause could delay an input for
// ever. It then drains no more than the queues hold.
func (b *Mailbox) step(left int) int {
	b.Token.Check()
	for {
		if b.inputs.Load() == 0 && !b.called {
			left = b.drain(&b.Recvs, left)
			left = b.drain(&b.Requests, left)
			if b.bothEnded {
				b.cold.owner.Ended()
			}
			return left
		}
		told := b.readInputs()
		calm := b.called && b.Requests.published(b.Requests.before) && b.Recvs.published(b.Recvs.before)
		b.drain(&b.Recvs, int(b.Recvs.mask)+1)
		b.drain(&b.Requests, int(b.Requests.mask)+1)
		if b.bothEnded {
			b.cold.owner.Ended()
		}
		if told&tellMark != 0 {
			b.mark()
		}
		b.cold.owner.Handle(told)
		b.noteEnds(told)
		switch {
		case calm:
			b.called = false
			b.cold.owner.Execute()
		case told == 0:
			return left
		}
	}
}

// noteEnds notes that the provider has nothing of a queue any more.
func (b *Mailbox) noteEnds(told uint32) {
	b.Token.Check()
	if told&(tellRequestEnd|tellRecvEnd) != 0 {
		b.Requests.ended = b.Requests.ended || told&tellRequestEnd != 0
		b.Recvs.ended = b.Recvs.ended || told&tellRecvEnd != 0
		b.bothEnded = b.Requests.ended && b.Recvs.ended
	}
}

// readInputs reads the inputs, and puts a control call aside: the step executes the
// call once everything that had a ticket before it is published. A post may have
// returned and still wait behind an earlier ticket whose slot is being filled; the
// poster with that ticket kicks the step when it has published the slot.
func (b *Mailbox) readInputs() (told uint32) {
	b.Token.Check()
	told = b.inputs.Swap(0)
	if told&TellControl != 0 {
		b.called = true
		w := b.Token.Load()
		b.Requests.before, b.Recvs.before = b.Requests.tail(w), b.Recvs.tail(w)
	}
	return told &^ TellControl
}

// path is where published work goes in the present state.
type path uint8

const (
	toProvider path = iota
	toFlush         // the provider has nothing of the queue: the holder completes the work as flushed
	toHold          // the provider still has earlier work to flush: the work waits for the queue's end
)

func (b *Mailbox) path(q *Queue) path {
	switch b.State().Phase() {
	case Up:
		return toProvider
	case Over, Gone:
		if q.ended {
			return toFlush
		}
		return toHold
	case Draining:
		if q == &b.Requests {
			return toHold // a provider takes no request after Drain; these were posted too late
		}
		return toProvider
	default:
		if q == &b.Requests {
			return toFlush // it was posted before a Reset
		}
		return toProvider
	}
}

// drain hands on the published posts of q, as far as the budget goes, and returns
// what is left of the budget.
func (b *Mailbox) drain(q *Queue, left int) int {
	for left > 0 && publishedNext(q) {
		switch b.path(q) {
		case toHold:
			return left
		case toFlush:
			q.flushNext()
			left--
		case toProvider:
			n, done, err := b.handToProvider(q, left)
			left -= n
			if err != nil {
				b.providerFailed(q, uint32(n-done), err)
			}
		}
	}
	return left
}

// handToProvider gives the provider up to most posts of q. n is how many it gathered,
// done how many the provider took.
func (b *Mailbox) handToProvider(q *Queue, most int) (n, done int, err error) {
	if q == &b.Recvs {
		n = b.gatherRecvs(min(most, scratchWRs))
		done, err = b.qp.PostRecv(b.recvWRs[:n])
		if q.prompt {
			q.handOn()
		}
	} else {
		n = b.gatherRequests(min(most, scratchWRs))
		done, err = b.qp.PostSend(b.sendWRs[:n])
	}
	return n, done, err
}

// scratch returns the i-th of the scratch requests, of which there are i at least. They
// grow to the longest run of requests that the endpoint has handed on at once: an idle
// endpoint has none.
func scratch[WR hw.SendWR | hw.RecvWR](wrs *[]WR, i int) *WR {
	if i >= len(*wrs) {
		*wrs = append(*wrs, *new(WR))
	}
	return &(*wrs)[i]
}

func (b *Mailbox) gatherRecvs(most int) int {
	q := &b.Recvs
	n := 0
	for n < most && publishedNext(q) {
		t := q.next
		wr := scratch(&b.recvWRs, n)
		wr.ID, wr.SGL = q.id|uint64(t&q.mask), q.segments(t, int(q.slot(t).nseg))
		q.next = (t + 1) & ticketMask
		n++
	}
	return n
}

func (b *Mailbox) gatherRequests(most int) int {
	q := &b.Requests
	n := 0
	for n < most && publishedNext(q) {
		t := q.next
		b.describe(scratch(&b.sendWRs, n), t)
		q.next = (t + 1) & ticketMask
		n++
	}
	return n
}

// describe makes a work request of a slot. Providers read the extra fields only for
// operations that have them.
func (b *Mailbox) describe(wr *hw.SendWR, t uint32) {
	q := &b.Requests
	s := q.slot(t)
	wr.ID = q.id | uint64(t&q.mask)
	wr.Op = s.op
	wr.Flags = hw.WRSignaled
	if s.flags != 0 {
		wr.Flags = b.wrFlags(t, true)
	}
	wr.SGL = q.segments(t, int(s.nseg))
	wr.RKey, wr.RemoteAddr = s.rkey, s.addr
	if operations[s.op&31].extended {
		wr.Imm = s.imm
		switch {
		case s.op == hw.OpBind:
			wr.Bind = &q.binds.of(t & q.mask).Bind
			wr.Flags |= hw.WRSignaled // the bind's window must learn when it ends
		case operations[s.op&31].atomic:
			o := q.operands.of(t & q.mask)
			wr.Operand, wr.Compare = o.operand, o.compare
		}
	}
}

// wrFlags returns the flags of a ticket's request for the provider. A suppressed request is
// unsignaled, except every signalEvery-th: only a completion tells that the
// requests before it are done, and gives back their slots and their places in the
// dispatcher.
//
// A suppressed request is also signaled when it took the last place of its
// dispatcher. So silent requests never hold all places of a dispatcher for good: of
// the requests that hold them, from however many endpoints, the last one to come
// here finds all places taken and is signaled. Requests of one run have taken their
// places together, and the last one of the run looks for all; a sink is always full.
func (b *Mailbox) wrFlags(ticket uint32, last bool) (w hw.WRFlags) {
	s := b.Requests.slot(ticket)
	f := s.flags
	if f&hw.Suppress == 0 || b.unsignaled+1 >= b.signalEvery || last && s.to != nil && s.to.Full() {
		w = hw.WRSignaled
		b.unsignaled = 0
	} else {
		b.unsignaled++
		b.unreported.add(ticket, 1)
	}
	if f&hw.SolicitedWait != 0 {
		w |= hw.WRSolicited
	}
	if f&hw.BarrierFence != 0 {
		w |= hw.WRFence
	}
	return w
}

// providerFailed takes back the last n requests of q, which the provider refused
// although it had room for them, and ends the connection. The requests are flushed
// when the queue has ended.
func (b *Mailbox) providerFailed(q *Queue, n uint32, err error) {
	b.Token.Check()
	q.next = (q.next - n) & ticketMask
	b.cold.owner.Failed(err)
}
