package ep

import (
	"math"

	"godat/evd"
	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/door"
	"godat/internal/memory"
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

// postRequest posts a send, a write or a read. remote is nil for a send, and ownSend for one
// of a connection. shot, unless it is nil, takes the completion.
func (e *Endpoint) postRequest(op hw.Op, cookie uint64, flags hw.Flags, segs []mem.Segment, remote *mem.RemoteSegment, shot *evd.OneShot) error {
	if cookie>>63 != 0 && remote != &ownSend && e.refuses(cookie) {
		return reservedCookie(callOf(op), cookie)
	}
	slow := func() error { return e.postSlow(op, cookie, flags, segs, remote, shot) }
	if e == nil || len(segs) != 1 {
		return slow()
	}
	b, seg := &e.box, &segs[0]
	q := &b.requests
	r := q.rules.Load()
	if (uint32(flags)|always)&r.illegal[op&31] != 0 || b.state.Load() != uint32(Connected) {
		return slow()
	}
	need, longest := hw.LocalRead, r.longest
	if op != hw.OpSend {
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
		if region = r.zone.Find(&q.near, seg.Context); region == nil {
			return slow()
		}
	}
	if uint64(seg.Len)-1 >= longest || !region.Allows(r.zone, (*memory.Segment)(seg), need) {
		return slow()
	}
	to := r.queues.For(cookie)
	w := b.token.Load()
	switch {
	case shot != nil:
		if to = b.e.adapter.arm(shot, r.evd); to == nil {
			return slow()
		}
	case !to.TryReserve() && !to.Reserve(1):
		return slow()
	}
	yield.Point()
	word := (w + 1<<requestShift) | token.Held
	if word&guards != 0 || (uint32(w>>requestShift)-q.retired.Load())&ticketMask >= q.depth.Load() || !b.token.Swap(w, word) {
		if w = b.takePlain(q, 1); w == noTicket {
			to.Release(1)
			return slow()
		}
	}
	ticket := uint32(w>>requestShift) & ticketMask
	i := ticket & q.mask
	s := &q.slots[i]
	s.op, s.nseg, s.flags = op, 1, flags
	s.cookie = cookie
	s.to = to
	sge := &s.sge[0]
	sge.Addr, sge.Len, sge.LKey = seg.Addr, seg.Len, region.LKey
	if remote != nil {
		s.addr, s.rkey = remote.Addr, remote.Context
	}
	if w&token.Held != 0 || q.next != ticket || b.state.Load() != uint32(Connected) {
		b.submit(q, ticket, 1, w&token.Held == 0)
		return nil
	}
	word = w + 1<<requestShift
	runner := b.runner
	if runner == nil {
		b.handOne(q, ticket, word)
		return nil
	}
	q.next = (ticket + 1) & ticketMask
	q.ready = q.next
	wrFlags := hw.WRSignaled
	if flags != 0 {
		wrFlags = b.wrFlags(s, true)
	}
	if runner.PostRun(op, wrFlags, q.id|uint64(i), sge, slotSize, 1, s.rkey, s.addr) == 0 {
		b.handAgain(q, ticket, wrFlags)
	}
	if !b.letGo(word) {
		b.run(false)
	}
	return nil
}

// fits reports whether a write or read of one segment has lengths that go together, and
// names remote memory that was within its region (see checkRDMA).
func fits(op hw.Op, seg *mem.Segment, remote *mem.RemoteSegment) bool {
	return remote.Addr != math.MaxUint64 && (seg.Len == remote.Len || op == hw.OpWrite && seg.Len < remote.Len)
}

// postRecv posts a receive.
func (e *Endpoint) postRecv(cookie uint64, flags hw.Flags, segs []mem.Segment, shot *evd.OneShot) error {
	if cookie>>63 != 0 && e.refuses(cookie) {
		return reservedCookie(callOf(hw.OpRecv), cookie)
	}
	slow := func() error { return e.postSlow(hw.OpRecv, cookie, flags, segs, nil, shot) }
	if e == nil || len(segs) != 1 {
		return slow()
	}
	b, seg := &e.box, &segs[0]
	q := &b.recvs
	r := q.rules.Load()
	if (uint32(flags)|always)&r.illegal[hw.OpRecv] != 0 || b.state.Load() != uint32(Connected) {
		return slow()
	}
	region := q.near.Lookup(seg.Context)
	if region == nil {
		if region = r.zone.Find(&q.near, seg.Context); region == nil {
			return slow()
		}
	}
	if uint64(seg.Len)-1 >= r.longest || !region.Allows(r.zone, (*memory.Segment)(seg), hw.LocalWrite) {
		return slow()
	}
	to := r.queues.For(cookie)
	w := b.token.Load()
	switch {
	case shot != nil:
		if to = b.e.adapter.arm(shot, r.evd); to == nil {
			return slow()
		}
	case !to.TryReserve() && !to.Reserve(1):
		return slow()
	}
	yield.Point()
	word := (w + 1<<recvShift) | token.Held
	if word&guards != 0 || (uint32(w>>recvShift)-q.retired.Load())&ticketMask >= q.depth.Load() || !b.token.Swap(w, word) {
		if w = b.takePlain(q, 1); w == noTicket {
			to.Release(1)
			return slow()
		}
	}
	ticket := uint32(w>>recvShift) & ticketMask
	i := ticket & q.mask
	s := &q.slots[i]
	s.op, s.nseg, s.flags = hw.OpRecv, 1, flags
	s.cookie = cookie
	s.to = to
	sge := &s.sge[0]
	sge.Addr, sge.Len, sge.LKey = seg.Addr, seg.Len, region.LKey
	if w&token.Held != 0 || q.next != ticket || b.state.Load() != uint32(Connected) {
		b.submit(q, ticket, 1, w&token.Held == 0)
		return nil
	}
	word = w + 1<<recvShift
	runner := b.runner
	if runner == nil {
		b.handOne(q, ticket, word)
		return nil
	}
	q.next = (ticket + 1) & ticketMask
	q.ready = q.next
	if runner.RecvRun(q.id|uint64(i), sge, slotSize, 1) == 0 {
		b.handAgain(q, ticket, 0)
	}
	q.noteHanded(ticket, 1)
	if !b.letGo(word) {
		b.run(false)
	}
	runner.Kick() // the word was swapped, which orders Kick behind RecvRun
	return nil
}

// postSlow posts what the short way does not take.
func (e *Endpoint) postSlow(op hw.Op, cookie uint64, flags hw.Flags, segs []mem.Segment, remote *mem.RemoteSegment, shot *evd.OneShot) error {
	w := work{op: op, flags: flags, cookie: cookie, segs: segs}
	if remote != nil {
		w.remote = *remote
	}
	return post(e, &w, shot)
}

// postOne posts a batch of one: a receive, a send, a write or a read.
func (b *mailbox) postOne(q *queue, d *DTO) error {
	if q == &b.recvs {
		return b.e.postRecv(d.Cookie, d.Flags, d.list(), d.OneShot)
	}
	remote := &d.Remote
	switch {
	case d.own: // a send
		remote = &ownSend
	case d.Op == hw.OpSend:
		remote = nil
	}
	return b.e.postRequest(d.Op, d.Cookie, d.Flags, d.list(), remote, d.OneShot)
}

// arm returns the queue of a one-shot for one event, or nil if a post may not name the
// one-shot now.
func (a *Adapter) arm(shot *evd.OneShot, d *evd.Dispatcher) *delivery.Queue {
	s := shot.Wiring(door.Key{})
	if !s.Serves(wiring(d), a.ia) {
		return nil
	}
	to, err := s.Arm()
	if err != nil {
		return nil
	}
	return to
}

// noTicket is no word: Kicked is set in none that is not Held.
const noTicket = token.Kicked

// takePlain is takeTickets for posts that meet nothing unusual: it takes n tickets or
// none. It returns the word from which it took them, and the token unless the word has Held
// in it; or noTicket.
func (b *mailbox) takePlain(q *queue, n uint32) (w uint64) {
	shift := q.tailShift & 63
	for {
		w = b.token.Load()
		word := (w + uint64(n)<<shift) | token.Held
		if word&guards != 0 || (uint32(w>>shift)-q.retired.Load())&ticketMask+n > q.depth.Load() {
			return noTicket
		}
		if b.token.Swap(w, word) {
			return w
		}
	}
}

// handOrSubmit hands on the operation of a ticket by the short way if it can.
func (b *mailbox) handOrSubmit(q *queue, ticket uint32, word uint64, mine bool) {
	if mine && q.next == ticket && b.path(q) == toProvider {
		b.handOne(q, ticket, word)
	} else {
		b.submit(q, ticket, 1, mine)
	}
}

// handOne hands the operation of a ticket to the provider, as an array of one, and ends
// the short way. The caller holds the token, and every earlier ticket was handed on.
func (b *mailbox) handOne(q *queue, ticket uint32, word uint64) {
	q.next = (ticket + 1) & ticketMask
	q.ready = q.next
	if q == &b.requests {
		b.describe(b.sendWR(0), ticket)
	}
	b.handArray(q, ticket)
	q.noteHanded(ticket, 1)
	if !b.letGo(word) {
		b.run(false)
	}
}

// handAgain hands on the operation of a ticket that PostRun or RecvRun has left alone.
// flags are the request's: they were asked for once, and count.
func (b *mailbox) handAgain(q *queue, ticket uint32, flags hw.WRFlags) {
	if q == &b.requests {
		s := q.slot(ticket)
		*b.sendWR(0) = hw.SendWR{
			ID: q.id | uint64(ticket&q.mask), Op: s.op, Flags: flags,
			SGL: q.segments(ticket, int(s.nseg)), RKey: s.rkey, RemoteAddr: s.addr,
		}
	}
	b.handArray(q, ticket)
}

func (b *mailbox) handArray(q *queue, ticket uint32) {
	var err error
	if q == &b.requests {
		_, err = b.qp.PostSend(b.sendWRs[:1])
	} else {
		wr := b.recvWR(0)
		wr.ID, wr.SGL = q.id|uint64(ticket&q.mask), q.segments(ticket, int(q.slot(ticket).nseg))
		_, err = b.qp.PostRecv(b.recvWRs[:1])
	}
	if err != nil {
		b.providerFailed(q, 1, err)
	}
}
