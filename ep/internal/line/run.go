package line

import (
	"unsafe"

	"godat/hw"
	"godat/internal/token"
)

// run is n posts that have consecutive tickets and filled slots, and go the short way together: stage 5 of several.
type run struct {
	b         *Mailbox
	q         *Queue
	ticket, n uint32
}

// hand hands on posts whose slots are filled. w is the word from which the poster took their
// tickets.
func (r run) hand(w uint64) {
	b, q, ticket, n := r.b, r.q, r.ticket, r.n
	if w&token.Held != 0 || q.next != ticket || !b.up() || b.runner == nil {
		b.submit(q, ticket, n, w&token.Held == 0)
		return
	}
	runner := b.runner // the holder reads it: Modify may replace it when the token is free
	word := w + uint64(n)<<(q.tailShift&63)
	q.ready = (ticket + n) & ticketMask
	if q == &b.Requests {
		if !r.requests() || !b.letGo(word) {
			b.run(false)
		}
		return
	}
	if !r.recvs() || !b.letGo(word) {
		b.run(false)
	}
	runner.Kick() // the word was swapped, which orders Kick behind RecvRun
}

// requests hands the requests to the provider. It reports whether the provider has all; if
// not, the step hands on the rest. The caller holds the token.
func (r run) requests() bool {
	b, q, ticket, n := r.b, r.q, r.ticket, r.n
	b.Token.Check()
	for n > 0 {
		silent := b.unsignaled
		flags, some := r.alike(ticket, n)
		s := q.slot(ticket)
		more := flags
		if some < n {
			more |= hw.WRMore
		}
		q.next = (ticket + some) & ticketMask
		done := uint32(b.runner.PostRun(s.op, more, q.id|uint64(ticket&q.mask), &s.sge[0], slotSize, int(some), s.rkey, s.addr))
		ticket, n = ticket+done, n-done
		if done < some {
			q.next = ticket & ticketMask
			if b.unsignaled = silent; flags&hw.WRSignaled == 0 {
				b.unsignaled += int(done) // the step asks again for the others' flags
			}
			return false
		}
	}
	return true
}

// alike returns the flags that the request of a ticket has for the provider, and how many of
// the requests from there on differ from it in their ids and segments alone: sends, whose
// slots lie one behind the other. The run has left requests from the ticket on. Suppressed
// ones are signaled as wrFlags says.
func (r run) alike(ticket, left uint32) (flags hw.WRFlags, n uint32) {
	b, q := r.b, r.q
	slots := q.slots[ticket&q.mask:]
	if most := int(left); most < len(slots) {
		slots = slots[:most]
	}
	s := &slots[0]
	if s.op != hw.OpSend {
		return b.wrFlags(ticket, left == 1), 1
	}
	switch s.flags {
	case 0:
		flags = hw.WRSignaled
	case hw.Suppress:
		silent := min(int(left), b.signalEvery-b.unsignaled) - 1
		if silent < 1 {
			return b.wrFlags(ticket, left == 1), 1
		}
		slots = slots[:min(silent, len(slots))]
	default:
		return b.wrFlags(ticket, left == 1), 1
	}
	for i := range slots {
		if next := &slots[i]; next.op != hw.OpSend || next.flags != s.flags {
			break
		}
		n++
	}
	if flags == 0 {
		b.unsignaled += int(n)
		b.unreported.add(ticket, n)
	}
	return flags, n
}

const slotSize = unsafe.Sizeof(slot{})

// recvs is requests for receives.
func (r run) recvs() bool {
	b, q, ticket, n := r.b, r.q, r.ticket, r.n
	b.Token.Check()
	for n > 0 {
		i := ticket & q.mask
		some := min(n, q.mask+1-i) // whose slots lie one behind the other
		q.next = (ticket + some) & ticketMask
		posted := uint32(b.runner.RecvRun(q.id|uint64(i), &q.slots[i].sge[0], slotSize, int(some)))
		q.noteHanded(ticket, posted)
		ticket, n = ticket+posted, n-posted
		if posted < some {
			q.next = ticket & ticketMask
			return false
		}
	}
	return true
}
