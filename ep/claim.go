package ep

import (
	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/door"
	"godat/internal/memory"
	"godat/internal/token"
	"godat/internal/yield"
	"godat/mem"
)

// Claim is the endpoint's token in the hands of package stream: a call that finds the
// endpoint idle claims it, makes its message, posts that, and releases the endpoint. So the
// swap that takes the token is also the lock under which the message is made.
//
// While an endpoint is claimed, its holder alone posts on it: other calls of the package
// wait until Claimed reports false, and nobody else has the endpoint. So the holder knows the
// next tickets, and adds what it has used to the word in the swap that releases the token.
// Until then a goroutine that looks without the token may find retired ahead of the tails
// in the word.
//
// The holder ends the claim by Send or Release, once. A Claim serves one claim after the other;
// its fields are the holder's, but for b.
type Claim struct {
	b    *mailbox        // immutable
	word uint64          // as it was free
	used uint64          // what the posts add to it
	to   *delivery.Queue // the sink
	lkey uint32
	left bool // the step has posts to hand on
}

// claimedRecvs is the most receives that are posted during one claim.
const claimedRecvs = 64

// NewClaim makes a Claim of the endpoint.
func (e *Endpoint) NewClaim(door.Key) Claim { return Claim{b: &e.box} }

// Claim claims the endpoint for a send from within a segment, if it is connected, idle, and
// has room for the send; completions go to a sink. It reports whether it did.
func (c *Claim) Claim(from *mem.Segment) bool {
	b := c.b
	q := &b.requests
	r := q.rules.Load()
	if (uint32(hw.Suppress)|always)&r.illegal[hw.OpSend] != 0 || b.state.Load() != uint32(Connected) {
		return false
	}
	region := q.near.Lookup(from.Context)
	if region == nil {
		if region = r.zone.Find(&q.near, from.Context); region == nil {
			return false
		}
	}
	to := r.queues.Main()
	if uint64(from.Len)-1 >= r.longest || !region.Allows(r.zone, (*memory.Segment)(from), hw.LocalRead) || !to.Sink() {
		return false
	}
	w := b.token.Load()
	yield.Point()
	if most := uint64(1<<requestShift | claimedRecvs<<recvShift); (w+most)&guards != 0 || w&token.Held != 0 || !b.token.Swap(w, w|token.Held) {
		return false
	}
	c.word, c.used, c.to, c.lkey, c.left = w, 0, to, region.LKey, false
	if q.next != uint32(w>>requestShift)&ticketMask || (q.next-q.retired.Load())&ticketMask >= q.depth.Load() || b.state.Load() != uint32(Connected) {
		c.Release()
		return false
	}
	return true
}

// Claimed reports whether a call may have claimed the endpoint. The state stays Connected
// during a claim.
func (c *Claim) Claimed() bool {
	return c.b != nil && c.b.state.Load() == uint32(Connected) && c.b.token.Load()&token.Held != 0
}

// RecvAgain is [Endpoint.PostRecvAgain] by the holder of a claim.
func (c *Claim) RecvAgain(n, length uint32) bool {
	b := c.b
	q := &b.recvs
	ticket := q.next
	if b.direct == nil || n > claimedRecvs || c.used != 0 || ticket != uint32(c.word>>recvShift)&ticketMask || (ticket-q.retired.Load())&ticketMask+n > q.depth.Load() {
		return false
	}
	for i := range n {
		q.slot(ticket + i).sge[0].Len = length // keep has overwritten it
	}
	c.used = uint64(n) << recvShift
	q.ready = (ticket + n) & ticketMask
	for n > 0 && !c.left {
		id, sge, some := q.stretch(ticket, n)
		posted := uint32(b.direct.RecvRun(id, sge, slotSize, int(some)))
		q.noteHanded(ticket, posted)
		ticket, n = (ticket+posted)&ticketMask, n-posted
		q.next = ticket
		c.left = posted < some
	}
	return true
}

// Send sends n bytes at an address within the claimed segment, and ends the claim. The flags
// are none, or Suppress.
func (c *Claim) Send(cookie uint64, flags hw.Flags, addr uint64, n uint32) {
	b := c.b
	b.token.Check()
	q := &b.requests
	ticket := q.next
	i := ticket & q.mask
	s := &q.slots[i]
	s.op, s.nseg, s.flags = hw.OpSend, 1, flags
	s.cookie, s.to = cookie, c.to
	sge := &s.sge[0]
	sge.Addr, sge.Len, sge.LKey = addr, n, c.lkey
	kick := c.used != 0
	c.used += 1 << requestShift
	q.ready = (ticket + 1) & ticketMask
	switch {
	case c.left:
		c.enter()
		b.run(false)
		return
	case b.direct == nil:
		c.enter()
		b.handOne(q, ticket, c.word+c.used)
		return
	}
	q.next = q.ready
	wrFlags := hw.WRSignaled
	switch {
	case flags == 0:
	case b.unsignaled+1 < b.signalEvery: // as wrFlags; a sink is never full
		wrFlags = 0
		b.unsignaled++
	default:
		wrFlags = b.wrFlags(s, true)
	}
	direct := b.direct
	posted := direct.PostOne(hw.OpSend, wrFlags, q.id|uint64(i), sge, 0, 0)
	if !posted {
		c.enter()
		b.handAgain(q, ticket, wrFlags)
		b.run(false)
	} else if yield.Point(); !b.token.ReleaseAs(c.word, c.word+c.used) {
		c.enter()
		b.run(false)
	}
	if kick {
		direct.Kick() // the word was swapped, which orders Kick behind RecvOne
	} else {
		direct.LookAgain()
	}
}

// enter adds what the posts have used to the word, for the step. A kick may have changed the
// word.
func (c *Claim) enter() {
	b := c.b
	b.token.Check()
	for {
		if w := b.token.Load(); b.token.Swap(w, w+c.used) {
			return
		}
	}
}

// Release ends the claim without a send.
func (c *Claim) Release() {
	b, kick := c.b, c.used != 0
	direct := b.direct
	if yield.Point(); c.left || !b.token.ReleaseAs(c.word, c.word+c.used) {
		c.enter()
		b.run(false)
	}
	if kick {
		direct.Kick()
	} else if direct != nil {
		direct.LookAgain()
	}
}
