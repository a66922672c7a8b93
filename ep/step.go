package ep

import "godat/hw"

// scratchWRs is the most work requests handed to a provider in one call.
const scratchWRs = 32

// step does what there is to do: receives first, then requests, then inputs. It
// returns what is left of the budget. It asserts the owner for the methods below,
// which run for each post: a check costs microseconds where it is built in.
//
// An input is taken before the queues are drained, and handled after: what was
// posted before it was told precedes it. It waits for no budget, or those who post
// without end would keep it from being heard; what is drained for it is no more
// than the queues hold.
func (b *mailbox) step(left int) int {
	b.own.Check()
	for {
		if b.inputs.Load() == 0 && !b.called {
			left = b.drain(&b.recvs, left)
			left = b.drain(&b.requests, left)
			if b.e.machine.bothEnded {
				b.e.machine.announceEndOnceFlushed()
			}
			return left
		}
		told := b.hear()
		calm := b.called && b.requests.published(b.requests.before) && b.recvs.published(b.recvs.before)
		b.drain(&b.recvs, len(b.recvs.slots))
		b.drain(&b.requests, len(b.requests.slots))
		if b.e.machine.bothEnded {
			b.e.machine.announceEndOnceFlushed()
		}
		b.e.machine.handle(told)
		switch {
		case calm:
			b.called = false
			b.e.machine.execute()
		case told == 0:
			return left
		}
	}
}

// hear takes the inputs, and puts a control call aside: it is executed when all
// that had a ticket before it is published. A post that has returned may still
// wait behind the ticket of one that is being filled; whoever has that one pokes.
func (b *mailbox) hear() (told uint32) {
	b.own.Check()
	told = b.inputs.Swap(0)
	if told&tellControl != 0 {
		b.called = true
		w := b.word.Load()
		b.requests.before, b.recvs.before = b.requests.tail(w), b.recvs.tail(w)
	}
	return told &^ tellControl
}

// path says where published work goes in the present state.
type path uint8

const (
	toProvider path = iota
	toFlush         // nothing of ours is with the provider: complete it here
	toHold          // the provider still has earlier work to flush; wait for the queue's end
)

func (b *mailbox) path(q *queue) path {
	switch b.State() {
	case Connected:
		return toProvider
	case Disconnected, closed:
		if q.ended {
			return toFlush
		}
		return toHold
	case DisconnectPending:
		if q == &b.requests {
			return toHold // the provider takes none after Drain; they were posted too late
		}
		return toProvider
	default:
		if q == &b.requests {
			return toFlush // it was posted in an earlier life
		}
		return toProvider
	}
}

// drain hands on what is published of q, as far as the budget goes, and returns
// what is left of it.
func (b *mailbox) drain(q *queue, left int) int {
	for left > 0 && b.publishedNext(q) {
		switch b.path(q) {
		case toHold:
			return left
		case toFlush:
			q.flushNext()
			left--
		case toProvider:
			n, done, err := b.hand(q, left)
			left -= n
			if err != nil {
				b.providerFailed(q, uint32(n-done), err)
			}
		}
	}
	return left
}

// hand gives the provider up to most posts of q: n were gathered, done taken.
func (b *mailbox) hand(q *queue, most int) (n, done int, err error) {
	if q == &b.recvs {
		n = b.gatherRecvs(min(most, len(b.recvWRs)))
		done, err = b.qp.PostRecv(b.recvWRs[:n])
		if q.prompt {
			q.handed.Store(q.next)
		}
	} else {
		n = b.gatherRequests(min(most, len(b.sendWRs)))
		done, err = b.qp.PostSend(b.sendWRs[:n])
	}
	return n, done, err
}

func (b *mailbox) gatherRecvs(most int) int {
	q := &b.recvs
	n := 0
	for n < most && b.publishedNext(q) {
		t := q.next
		wr := &b.recvWRs[n]
		wr.ID, wr.SGL = q.id|uint64(t&q.mask), q.segments(t)[:q.slot(t).nseg]
		q.next = (t + 1) & ticketMask
		n++
	}
	return n
}

func (b *mailbox) gatherRequests(most int) int {
	q := &b.requests
	n := 0
	for n < most && b.publishedNext(q) {
		t := q.next
		b.describe(&b.sendWRs[n], t)
		q.next = (t + 1) & ticketMask
		n++
	}
	return n
}

// describe makes a request of a slot. Providers look at the extra fields of the
// operations that have them only.
func (b *mailbox) describe(wr *hw.SendWR, t uint32) {
	q := &b.requests
	s := q.slot(t)
	wr.ID = q.id | uint64(t&q.mask)
	wr.Op = s.op
	wr.Flags = hw.WRSignaled
	if s.flags != 0 {
		wr.Flags = b.wrFlags(s)
	}
	wr.SGL = q.segments(t)[:s.nseg]
	wr.RKey, wr.RemoteAddr = s.rkey, s.addr
	if operations[s.op&31].extended {
		wr.Imm, wr.Operand, wr.Compare = s.imm, s.operand, s.compare
		if s.op == hw.OpBind {
			q.describeBind(wr, t)
		}
	}
}

// wrFlags are the request's flags for the provider. A suppressed request is
// unsignaled, except now and then: only a completion tells that the ones before
// it are done and gives their slots back, and their places in the dispatcher.
//
// It is signaled, too, when no place is left behind it. So silent requests never
// hold all places of a queue: of those that do, from however many endpoints, the one
// that came here last found the others' places taken, and is signaled.
func (b *mailbox) wrFlags(s *slot) (w hw.WRFlags) {
	f := s.flags
	if f&hw.Suppress == 0 || b.unsignaled+1 >= b.signalEvery || s.to != nil && s.to.Full() {
		w = hw.WRSignaled
		b.unsignaled = 0
	} else {
		b.unsignaled++
	}
	if f&hw.SolicitedWait != 0 {
		w |= hw.WRSolicited
	}
	if f&hw.BarrierFence != 0 {
		w |= hw.WRFence
	}
	return w
}

// providerFailed takes back the last n requests of q that the provider refused,
// though it had room for them: the connection can't go on. They are flushed when
// the queue has ended.
func (b *mailbox) providerFailed(q *queue, n uint32, err error) {
	b.own.Check()
	q.next = (q.next - n) & ticketMask
	b.e.machine.endConnection(inFailure, broken, nil, &hw.Cause{Text: "the device refused a request", Err: err})
}
