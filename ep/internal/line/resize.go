package line

import (
	"runtime"

	"godat/hw"
)

// Grow gives the queues more slots, or larger ones. None becomes shorter. The holder calls it.
func (b *Mailbox) Grow(requestDepth, requestIOV, recvDepth, recvIOV int) {
	b.Token.Check()
	b.changing.Store(true)
	b.enlarge(&b.Requests, requestDepth, requestIOV)
	b.enlarge(&b.Recvs, recvDepth, recvIOV)
	b.changing.Store(false)
}

// Move has posts go to another queue pair. The step that follows posts the receives to it again: the old
// one never connected, so its receives do not complete. The holder calls it.
func (b *Mailbox) Move(qp hw.QP) {
	b.Token.Check()
	if qp != b.qp {
		b.Recvs.next = b.Recvs.retired.Load()
	}
	b.SetQP(qp)
}

// enlarge gives a queue more slots, or larger ones. While it works no poster may have an unpublished
// ticket or get a new one. So it sets the depth to 0, and takes one ticket itself: the swap of a
// poster that read the old depth fails. The posts already queued move on by that one ticket.
func (b *Mailbox) enlarge(q *Queue, depth, iov int) {
	b.Token.Check()
	if depth <= int(q.asked) && iov <= q.iov {
		return
	}
	q.mu.Lock() // the first post, which makes the slots, comes before or behind this
	defer q.mu.Unlock()
	if q.slots == nil {
		q.size(depth, iov)
		return
	}
	q.depth.Store(0)
	tail := b.skip(q)
	for !q.published(tail) {
		runtime.Gosched() // its poster has the ticket and only has to publish it
	}
	old, was := q.slots, q.mask
	oldIOV, oldSGEs, oldOperands, oldBinds := q.iov, q.sges.take(), q.operands.take(), q.binds.take()
	q.size(depth, iov)
	q.slots = make([]slot, q.mask+1)
	first := q.retired.Load()
	for t := first; t != tail; t = (t + 1) & ticketMask {
		next := (t + 1) & ticketMask
		o := &old[t&was]
		q.slot(next).set(o)
		if o.nseg > 1 {
			copy(q.segments(next, int(o.nseg)), oldSGEs[int(t&was)*oldIOV:])
		}
		if oldOperands != nil {
			q.operands.made(len(q.slots))[next&q.mask] = oldOperands[t&was]
		}
		if oldBinds != nil {
			q.binds.made(len(q.slots))[next&q.mask] = oldBinds[t&was]
		}
	}
	q.next = (first + 1) & ticketMask
	q.ready = (tail + 1) & ticketMask
	q.retired.Store(q.next)
	q.depth.Store(uint32(depth))
}

// skip takes a ticket without a post, and returns it.
func (b *Mailbox) skip(q *Queue) (ticket uint32) {
	b.Token.Check()
	b.cold.Mu.Lock()
	defer b.cold.Mu.Unlock()
	tally := q.tally()
	tally.skipped++ // it is no post
	for {
		w := b.Token.Load()
		next := w + 1<<q.tailShift
		if b.Token.Swap(w, next&^guards) {
			if next&guards != 0 {
				tally.rounds++
			}
			return q.tail(w)
		}
	}
}

// set copies another slot's post into this slot.
func (s *slot) set(o *slot) {
	s.op, s.nseg, s.flags = o.op, o.nseg, o.flags
	s.cookie.Store(o.cookie.Load())
	s.to, s.sge, s.addr, s.rkey, s.imm = o.to, o.sge, o.addr, o.rkey, o.imm
}
