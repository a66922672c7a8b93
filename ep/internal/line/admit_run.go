package line

import (
	"math"

	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/memory"
	"godat/internal/release"
	"godat/internal/yield"
	"godat/mem"
)

// The short way of a batch, which is plain.go's for a run of posts: one swap takes all
// tickets and the token, one reservation takes the places of all events, and the
// provider gets all requests in one run (hw.Runner).
//
// postRun and PostPieces are admissions of their own, because a post costs 2.4 times the instructions where admit takes
// it alone, and a message of a Conn 8 % more where each piece is made a Post first and goes by postRun.

// postRun posts up to batchPosts operations. It returns false, and nothing has happened,
// if one of them can't go the short way.
func (b *Mailbox) postRun(q *Queue, dtos []Post) bool {
	r := q.rules.Load()
	if len(dtos) == 1 || !b.up() {
		return false
	}
	var lkeys [batchPosts]uint32
	if !r.checkRun(q, dtos, &lkeys) {
		return false
	}
	to, places := r.destinations(dtos)
	if to == nil {
		return false
	}
	posts, w := b.takeRun(q, to, places, len(dtos))
	if w == noTicket {
		return false
	}
	posts.fill(dtos, &lkeys, to)
	if places != len(dtos) {
		posts.route(dtos, r)
	}
	posts.hand(w)
	return true
}

// takeRun is stages 2 and 3 of n posts, of which so many need a place in one queue. It returns noTicket, and nothing
// has happened, if there is no room for all; else the word from which it took their tickets.
func (b *Mailbox) takeRun(q *Queue, to *delivery.Queue, places, n int) (posts run, w uint64) {
	if !to.Reserve(places) {
		return run{}, noTicket
	}
	yield.Point()
	if w = b.claimPlain(q, uint32(n)); w == noTicket {
		to.Release(places)
		return run{}, noTicket
	}
	return run{b, q, q.tail(w), uint32(n)}, w
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
// places; the others need none. It returns nil if they need places in several.
func (r *Rules) destinations(dtos []Post) (to *delivery.Queue, places int) {
	d := r.Queues
	if to = d.ForAll(); to != nil {
		return to, len(dtos)
	}
	var free *delivery.Queue
	for i := range dtos {
		switch next := d.For(dtos[i].Cookie); {
		case next == to:
			places++
		case next.Placeless():
			free = next
		case to == nil:
			to, places = next, 1
		default:
			return nil, 0
		}
	}
	if to == nil {
		return free, len(dtos)
	}
	return to, places
}

// fill is stage 4: it writes the slots of operations that checkRun has checked.
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

// PostPieces posts a receive for each cookie, into pieces of memory that have one size
// and lie one beside the other in a region, as a pool's buffers do: first is piece 0, step the
// distance from one piece to the next, and the low 32 bits of a cookie are the number of its
// piece. It costs less than PostRecvs: there is one key to look up, and one queue to find,
// which takes the completions of all.
//
// It returns false, and nothing has happened, if something else than a plain post is to be
// done, or if there are no cookies or more than 64; then the caller posts a batch.
func (b *Mailbox) PostPieces(first mem.Segment, step uint64, cookies []uint64) bool {
	q := &b.Recvs
	r := q.rules.Load()
	if !b.up() || uint(len(cookies)-1) >= batchPosts || always&r.illegal[hw.OpRecv] != 0 {
		return false
	}
	region := r.Zone.Find(&q.near, first.Context)
	if region == nil || uint64(first.Len)-1 >= r.longest {
		return false
	}
	seg := first
	for _, cookie := range cookies {
		seg.Addr = first.Addr + uint64(uint32(cookie))*step
		if !region.Allows(r.Zone, (*memory.Segment)(&seg), hw.LocalWrite) {
			return false
		}
	}
	to := r.Queues.For(cookies[0])
	posts, w := b.takeRun(q, to, len(cookies), len(cookies))
	if w == noTicket {
		return false
	}
	for i, cookie := range cookies {
		s := q.slot(posts.ticket + uint32(i))
		s.op, s.nseg, s.flags = hw.OpRecv, 1, 0
		release.Relaxed(&s.cookie, cookie)
		s.to = to
		sge := &s.sge[0]
		sge.Addr, sge.Len, sge.LKey = first.Addr+uint64(uint32(cookie))*step, first.Len, region.LKey
	}
	posts.hand(w)
	return true
}
