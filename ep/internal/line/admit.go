package line

import (
	"godat/evd"
	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/release"
)

// post checks and admits one operation, then publishes it or hands it to the
// provider. shot, unless it is nil, takes the completion.
func post(b *Mailbox, w *work, shot *evd.OneShot) error {
	if b == nil {
		return NilEndpoint(w.op)
	}
	q := &b.Requests
	if w.op == hw.OpRecv {
		q = &b.Recvs
	}
	ticket, mine, err := b.admit(q, w, shot)
	if err != nil {
		return err
	}
	b.submit(q, ticket, 1, mine)
	return nil
}

// admit is stages 1 to 4 of one operation: it checks it, reserves room for its event, and gives it a ticket
// and a filled slot. If Modify has replaced the rules meanwhile, it checks a
// refused operation again: the dispatcher of the old rules is no longer the
// endpoint's, and may be closed.
func (b *Mailbox) admit(q *Queue, w *work, shot *evd.OneShot) (ticket uint32, mine bool, err error) {
	for {
		r := q.rules.Load()
		lkey, err := b.check(r, w)
		if err != nil {
			return 0, false, err
		}
		ticket, mine, err = b.take(q, r, w, shot, lkey)
		if err == nil || q.rules.Load() == r {
			return ticket, mine, err
		}
	}
}

// take is admit after the check. lkey is the key of a single segment.
func (b *Mailbox) take(q *Queue, r *Rules, w *work, shot *evd.OneShot, lkey uint32) (ticket uint32, mine bool, err error) {
	to, err := b.destination(shot, r, w.cookie)
	switch {
	case err != nil:
		return 0, false, Wrap(CallOf(w.op), err)
	case to != nil && shot == nil && !to.Reserve(1):
		return 0, false, b.cold.owner.NoRoom(CallOf(w.op), to)
	}
	ticket, ok, mine := b.claimTicket(q)
	if !ok {
		if to != nil {
			to.Release(1)
		}
		return 0, false, b.whyNoTicket(CallOf(w.op))
	}
	q.fill(ticket, w, to, lkey)
	return ticket, mine, nil
}

// destination is stage 2, but for the place: it returns the queue that takes the completion of an operation, and arms the
// operation's one-shot if it has one.
func (b *Mailbox) destination(shot *evd.OneShot, r *Rules, cookie uint64) (*delivery.Queue, error) {
	switch {
	case shot != nil:
		return b.cold.owner.Arm(shot, r.Queues)
	case r.Queues == nil:
		return nil, nil
	}
	return r.Queues.For(cookie), nil
}

// fill is stage 4: it writes the slot of a ticket; lkey is the key of a single segment.
func (q *Queue) fill(ticket uint32, w *work, to *delivery.Queue, lkey uint32) {
	i := ticket & q.mask
	s := &q.slots[i]
	s.op = w.op
	s.nseg = uint8(len(w.segs))
	s.flags = w.flags
	release.Relaxed(&s.cookie, w.cookie)
	s.to = to
	if q.rules.Load().timed && w.flags&hw.Suppress == 0 {
		s.posted = Clock()
	}
	if w.single() {
		sge := &s.sge[0]
		sge.Addr, sge.Len, sge.LKey = w.segs[0].Addr, w.segs[0].Len, lkey
	} else {
		w.translate(q.segments(ticket, len(w.segs)), q.rules.Load().Zone)
	}
	if operations[w.op&31].special {
		s.addr, s.rkey = w.remote.Addr, w.remote.Context
		if w.op == hw.OpRead {
			w.trim(q.segments(ticket, len(w.segs)))
		}
	}
	if w.ext != nil {
		s.imm = w.ext.imm
		if operations[w.op&31].atomic {
			q.operands.made(len(q.slots))[i] = w.ext.operands
		}
	}
}
