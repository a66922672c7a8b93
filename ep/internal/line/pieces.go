package line

import (
	"godat/hw"
	"godat/internal/memory"
	"godat/internal/release"
	"godat/internal/yield"
	"godat/mem"
)

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
	if b.runner == nil || !b.up() || uint(len(cookies)-1) >= batchPosts || always&r.illegal[hw.OpRecv] != 0 {
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
	n := uint32(len(cookies))
	to := r.Queues.For(cookies[0])
	if !to.Reserve(len(cookies)) {
		return false
	}
	yield.Point()
	w := b.claimPlain(q, n)
	if w == noTicket {
		to.Release(len(cookies))
		return false
	}
	ticket := q.tail(w)
	for i, cookie := range cookies {
		s := q.slot(ticket + uint32(i))
		s.op, s.nseg, s.flags = hw.OpRecv, 1, 0
		release.Relaxed(&s.cookie, cookie)
		s.to = to
		sge := &s.sge[0]
		sge.Addr, sge.Len, sge.LKey = first.Addr+uint64(uint32(cookie))*step, first.Len, region.LKey
	}
	run{b, q, ticket, n}.hand(w)
	return true
}
