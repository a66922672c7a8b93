package line

import (
	"math"

	"godat/evd"
	"godat/hw"
	"godat/internal/memory"
	"godat/internal/release"
	"godat/internal/token"
	"godat/internal/yield"
	"godat/mem"
)

// The short way of a post, in one piece. It takes what most posts are: one segment that
// is not empty, with nothing wrong, on an endpoint that no other call uses. For any
// other post nothing has happened when postSlow finds out what it is.
//
// The poster takes its ticket and the token in one swap of the word. It hands the
// operation straight to the provider. Then one swap of the word releases the token, if
// the word has not changed since.

// PostPlain is admit and submit for one plain post, by hand. It posts a send, a write, a read or a receive.
// remote is nil for a send and a receive, and OwnSend for a send of a connection. shot, unless it is nil,
// takes the completion.
func PostPlain(b *Mailbox, op hw.Op, cookie uint64, flags hw.Flags, segs []mem.Segment, remote *mem.RemoteSegment, shot *evd.OneShot) error {
	slow := func() error { return postSlow(b, op, cookie, flags, segs, remote, shot) }
	if b == nil || len(segs) != 1 || cookie>>63 != 0 && remote != &OwnSend && b.reserves {
		return slow()
	}
	seg := &segs[0]
	q := &b.Requests
	if op == hw.OpRecv {
		q = &b.Recvs
	}
	r := q.rules.Load()
	if (uint32(flags)|always)&r.illegal[op&31] != 0 || !b.up() {
		return slow()
	}
	need, longest := hw.LocalRead, r.longest
	switch op {
	case hw.OpSend:
	case hw.OpRecv:
		need = hw.LocalWrite
	default:
		if !fits(op, seg, remote) {
			return slow()
		}
		longest = r.longestRDMA
		if op == hw.OpRead {
			need = hw.LocalWrite
		}
	}
	region := q.near.Lookup(seg.Context)
	if region == nil {
		if region = r.Zone.Find(&q.near, seg.Context); region == nil {
			return slow()
		}
	}
	if uint64(seg.Len)-1 >= longest || !region.Allows(r.Zone, (*memory.Segment)(seg), need) {
		return slow()
	}
	to := r.Queues.For(cookie)
	if shot != nil {
		var err error
		if to, err = b.cold.owner.Arm(shot, r.Queues); err != nil {
			return slow()
		}
	} else if !to.TryReserve() && !to.Reserve(1) {
		return slow()
	}
	shift := q.tailShift & 63
	w := b.Token.Load()
	yield.Point()
	word := (w + 1<<shift) | token.Held
	if word&guards != 0 || (uint32(w>>shift)-q.retired.Load())&ticketMask >= q.depth.Load() || !b.Token.Swap(w, word) {
		if w = b.claimPlain(q, 1); w == noTicket {
			to.Release(1)
			return slow()
		}
	}
	ticket := uint32(w>>shift) & ticketMask
	s := &q.slots[ticket&q.mask]
	s.op, s.nseg, s.flags = op, 1, flags
	release.Relaxed(&s.cookie, cookie)
	s.to = to
	sge := &s.sge[0]
	sge.Addr, sge.Len, sge.LKey = seg.Addr, seg.Len, region.LKey
	if remote != nil {
		s.addr, s.rkey = remote.Addr, remote.Context
	}
	b.handPlain(q, s, ticket, w)
	return nil
}

// handPlain hands on a plain post, which fills the slot s. w is the word from which its
// poster took the ticket.
func (b *Mailbox) handPlain(q *Queue, s *slot, ticket uint32, w uint64) {
	if w&token.Held != 0 || q.next != ticket || !b.up() || b.runner == nil {
		b.submit(q, ticket, 1, w&token.Held == 0)
		return
	}
	word := w + 1<<(q.tailShift&63)
	runner := b.runner // the holder reads it: Modify may replace it when the token is free
	id := q.id | uint64(ticket&q.mask)
	q.next = (ticket + 1) & ticketMask
	q.ready = q.next
	if q == &b.Recvs {
		if runner.RecvRun(id, &s.sge[0], slotSize, 1) == 0 {
			q.next = ticket
			b.run(false)
			return
		}
		q.noteHanded(ticket, 1)
		if !b.letGo(word) {
			b.run(false)
		}
		runner.Kick() // the word was swapped, which orders Kick behind RecvRun
		return
	}
	flags, silent := hw.WRSignaled, b.unsignaled
	if s.flags != 0 {
		flags = b.wrFlags(ticket, true)
	}
	if runner.PostRun(s.op, flags, id, &s.sge[0], slotSize, 1, s.rkey, s.addr) == 0 {
		q.next, b.unsignaled = ticket, silent // the step asks for the flags again
	} else if b.letGo(word) {
		return
	}
	b.run(false)
}

// fits reports whether a write or read of one segment has lengths that go together, and
// names remote memory that was within its region (see checkRDMA).
func fits(op hw.Op, seg *mem.Segment, remote *mem.RemoteSegment) bool {
	return remote.Addr != math.MaxUint64 && (seg.Len == remote.Len || op == hw.OpWrite && seg.Len < remote.Len)
}

// postSlow posts what the short way does not take.
func postSlow(b *Mailbox, op hw.Op, cookie uint64, flags hw.Flags, segs []mem.Segment, remote *mem.RemoteSegment, shot *evd.OneShot) error {
	w := work{op: op, flags: flags, cookie: cookie, segs: segs, own: remote == &OwnSend}
	if remote != nil {
		w.remote = *remote
	}
	return post(b, &w, shot)
}

// noTicket is no word: Kicked is set in none that is not Held.
const noTicket = token.Kicked

// claimPlain is claimTicket for posts that meet nothing unusual: it claims n tickets or
// none. It returns the word from which it took them, and the token unless the word has Held
// in it; or noTicket.
func (b *Mailbox) claimPlain(q *Queue, n uint32) (w uint64) {
	shift := q.tailShift & 63
	for {
		w = b.Token.Load()
		word := (w + uint64(n)<<shift) | token.Held
		if word&guards != 0 || (uint32(w>>shift)-q.retired.Load())&ticketMask+n > q.depth.Load() {
			if q.depth.Load() == 0 && q.open() {
				continue
			}
			return noTicket
		}
		if b.Token.Swap(w, word) {
			return w
		}
	}
}
