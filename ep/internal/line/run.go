package line

import (
	"math"
	"unsafe"

	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/memory"
	"godat/internal/release"
	"godat/internal/token"
	"godat/internal/yield"
)

// The short way of a batch, which is plain.go's for a run of posts: one swap takes all
// tickets and the token, one reservation takes the places of all events, and the
// provider gets all requests in one run (hw.Runner).

// postRun posts up to batchPosts operations. It returns false, and nothing has happened,
// if one of them can't go the short way.
func (b *Mailbox) postRun(q *Queue, dtos []Post) bool {
	r := q.rules.Load()
	if len(dtos) == 1 || b.runner == nil || !b.up() {
		return false
	}
	var lkeys [batchPosts]uint32
	if !r.checkRun(q, dtos, &lkeys) {
		return false
	}
	to, places := r.destinations(dtos)
	n := uint32(len(dtos))
	if to == nil || !to.Reserve(places) {
		return false
	}
	yield.Point()
	w := b.claimPlain(q, n)
	if w == noTicket {
		to.Release(places)
		return false
	}
	ticket := q.tail(w)
	posts := run{b, q, ticket, n}
	posts.fill(dtos, &lkeys, to)
	if places != len(dtos) {
		posts.route(dtos, r)
	}
	posts.hand(w)
	return true
}

// checkRun checks operations, and looks up the keys of their segments. It returns false if
// one can't go the short way.
func (r *Rules) checkRun(q *Queue, dtos []Post, lkeys *[batchPosts]uint32) bool {
	for i := range dtos {
		d := &dtos[i]
		op, need, longest := d.Op, hw.LocalRead, r.longest
		seg := d.single()
		switch {
		case seg == nil || d.OneShot != nil && d.OneShot != OwnShot || d.Cookie>>63 != 0 && d.OneShot == nil && q.box.reserves:
			return false
		case q.plain == hw.OpRecv:
			op, need = hw.OpRecv, hw.LocalWrite
		case op == hw.OpSend:
		case d.Remote.Addr == math.MaxUint64: // see checkRDMA
			return false
		case op == hw.OpWrite && seg.Len <= d.Remote.Len:
			longest = r.longestRDMA
		case op == hw.OpRead && seg.Len == d.Remote.Len:
			need, longest = hw.LocalWrite, r.longestRDMA
		default:
			return false
		}
		if (uint32(d.Flags)|always)&r.illegal[op&31] != 0 || uint64(seg.Len)-1 >= longest {
			return false
		}
		region := q.near.Lookup(seg.Context)
		if region == nil {
			region = r.Zone.Find(&q.near, seg.Context)
		}
		if region == nil || !region.Allows(r.Zone, (*memory.Segment)(seg), need) {
			return false
		}
		lkeys[uint(i)%batchPosts] = region.LKey
	}
	return true
}

// destinations returns the queue in which the completions of operations need so many
// places; the others complete to sinks. It returns nil if they need places in several.
func (r *Rules) destinations(dtos []Post) (to *delivery.Queue, places int) {
	d := r.Queues
	if to = d.ForAll(); to != nil {
		return to, len(dtos)
	}
	var sink *delivery.Queue
	for i := range dtos {
		switch next := d.For(dtos[i].Cookie); {
		case next == to:
			places++
		case next.Sink():
			sink = next
		case to == nil:
			to, places = next, 1
		default:
			return nil, 0
		}
	}
	if to == nil {
		return sink, len(dtos)
	}
	return to, places
}

// run is n posts that have consecutive tickets and go the short way together.
type run struct {
	b         *Mailbox
	q         *Queue
	ticket, n uint32
}

// hand hands on posts whose slots are filled. w is the word from which the poster took their
// tickets.
func (r run) hand(w uint64) {
	b, q, ticket, n := r.b, r.q, r.ticket, r.n
	if w&token.Held != 0 || q.next != ticket || !b.up() {
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

// fill writes the slots of operations that checkRun has checked.
func (r run) fill(dtos []Post, lkeys *[batchPosts]uint32, to *delivery.Queue) {
	q, ticket := r.q, r.ticket
	for i := range dtos {
		d := &dtos[i]
		s := q.slot(ticket + uint32(i))
		s.op, s.nseg, s.flags = d.Op, 1, d.Flags
		if q.plain == hw.OpRecv {
			s.op = hw.OpRecv
		}
		release.Relaxed(&s.cookie, d.Cookie)
		s.to = to
		seg, sge := d.single(), &s.sge[0]
		sge.Addr, sge.Len, sge.LKey = seg.Addr, seg.Len, lkeys[uint(i)%batchPosts]
		s.addr, s.rkey = d.Remote.Addr, d.Remote.Context
	}
}

// route corrects the queues in the slots of operations that do not all complete to one.
func (r run) route(dtos []Post, rules *Rules) {
	for i := range dtos {
		r.q.slot(r.ticket + uint32(i)).to = rules.Queues.For(dtos[i].Cookie)
	}
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
