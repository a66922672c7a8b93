package stream

import (
	"math"
	"slices"
	"sync/atomic"

	"godat/internal/yield"
	"godat/mem"
)

// A Read of leastOffered bytes or more that finds nothing to read lends its buffer to the
// device, and offers that memory to the peer for the bytes that come next. A peer with a
// large Write under way writes straight into the buffer: the reader copies nothing. Where
// the device can't exchange the memory of a region, no buffer is offered.
//
// An offer is for one place of the stream, up to which everything has come and was read.
// Its state follows from the counters, so neither end ever has to revoke it:
//
//	open   at == produced             the peer may write into mem
//	used   at < end, at < produced    the bytes from at to end are in mem
//	void   at >= end, at < produced   the bytes behind at are in the ring
//
// The first message that counts bytes behind at ends the offer, at both ends. A Read that
// must return while its offer is open, because its deadline passes or Close is called,
// leaves the peer a buffer of the connection's own (leave). Later Reads copy from there.
//
// Read returns when the device does not know its argument any more, whatever the peer does.
const (
	leastOffered = 64 << 10
	mostOffered  = mostLent
	longestPause = 4 << 20 // see landing.pause

	notOffered = math.MaxUint64 // the place of an offer that was never made
)

// landing is the memory that a Read offers. The holder of Conn.reading writes it, but for
// end.
type landing struct {
	region  *mem.LMR // nil until the first offer
	refused bool     // the device can't exchange the memory of a region
	from    uint64   // before this place of the stream nothing is offered
	pause   uint64   // bytes from one offer to the next, if the first one brings little
	holding          // of a report, for the next offer

	mem  []byte        // what the region was lent; nil once the offer has ended and all was read
	size int           // bytes of the offer; written before at
	at   atomic.Uint64 // the place of the newest offer, or notOffered
	end  atomic.Uint64 // the end of the newest bytes that came by an offer; arrive writes it, before produced
}

// offerBuffer offers p, which has leastOffered bytes or more, to the peer, and reports
// whether it did: then the caller calls land. Everything that has come was read.
func (c *line) offerBuffer(p []byte) bool {
	in := &c.flow.in
	at := in.consumed.Load()
	if in.refused || in.mem != nil || at < in.from {
		return false
	}
	p = p[:min(len(p), mostOffered)]
	c.sending.Lock() // also so that Close sees the region, or offerBuffer the close
	defer c.sending.Unlock()
	if c.closed.Load() || c.ended.Load() != nil || c.flow.credits() <= reportCredit || in.offer.Load() == offerMade || !c.lendLanding(p) {
		return false
	}
	in.mem, in.size = p, len(p)
	in.at.Store(at) // behind the size, for check
	if in.produced.Load() == at {
		_ = c.post(nil, &message{flags: flagOffer, ring: in.landing.region.Remote(0, len(p))}) // if it fails, the connection has ended
	}
	return true
}

// lendLanding gives the region of the offers the memory p. If that can't be, it sets
// refused. The caller holds sending.
func (c *line) lendLanding(p []byte) bool {
	l := &c.flow.in.landing
	if l.region == nil {
		region, err := c.pz.NewLoan(mostOffered, forPeer)
		if err != nil {
			l.refused = true
			return false
		}
		l.region = region
	}
	l.refused = l.region.Lend(p) != nil // because the adapter's close has freed the region
	return !l.refused
}

// land waits until the offer of p has ended, or Read must return, and takes p back. It
// returns the part of p that the peer has filled.
func (c *line) land(p []byte) []byte {
	for !c.mustRead() {
		c.report()
		c.wait(&c.reader, c.mayRead)
	}
	in := &c.flow.in
	over := c.ended.Load() != nil || in.fin.Load() // no bytes come behind those of produced
	at := in.at.Load()
	if in.produced.Load() == at && !over {
		c.leave()
		return nil
	}
	_ = in.landing.region.TakeBack(nothing[:]) // fails if Close has freed the region, which takes it back too
	in.mem = nil
	n := max(at, in.end.Load()) - at
	in.rate(n)
	return p[:n]
}

// leave leaves the peer another buffer in the place of the one that was offered.
//
// The peer may be writing, and nobody knows how far it is. So leave looks at the memory before
// and after the exchange. Bytes that were there before are in the copy that the peer is left,
// bytes that came in between differ and are copied now, and all others come into the new
// buffer. No byte comes twice, because an offer takes one write.
func (c *line) leave() {
	in := &c.flow.in
	before := make([]byte, len(in.mem))
	glance(before, in.mem)
	instead := slices.Clone(before)
	yield.Point()
	_ = in.landing.region.TakeBack(instead) // fails as in land
	for i, b := range in.mem {
		if b != before[i] {
			instead[i] = b
		}
	}
	in.mem = instead
	in.rate(0)
}

// glance copies bytes that the device may be writing: each as it was, or as it will be. It
// does not call copy, which the race detector sees.
//
//go:norace
func glance(to, from []byte) {
	for i := range to {
		to[i] = from[i]
	}
}

// rate decides where the next offer may be, behind one that brought n bytes. An offer costs
// a message, so a peer that writes little at a time, or has no use for offers, gets few.
func (l *landing) rate(n uint64) {
	if n >= leastOffered {
		l.pause = leastOffered
		return
	}
	l.from = l.at.Load() + l.pause
	l.pause = min(2*l.pause, longestPause)
}

// landed returns the bytes from a place of the stream on that came by an offer whose Read
// had returned.
func (l *landing) landed(at uint64) []byte {
	if end := l.end.Load(); at < end {
		first := l.at.Load()
		return l.mem[at-first : end-first]
	}
	return nil
}

// clear forgets the buffer that a Read has left, when its offer has ended and all was read.
func (in *inbound) clear() {
	if in.produced.Load() != in.at.Load() && in.consumed.Load() >= in.end.Load() {
		_ = in.landing.region.Lend(nothing[:]) // fails as in land
		in.mem = nil
	}
}

// target is the newest buffer that the peer has offered. The goroutine that completes
// receives writes buffer before bufferAt, and only once more was produced than the buffer before
// was for: so no writer looks at that one any more.
type target struct {
	buffer   mem.RemoteSegment
	bufferAt atomic.Uint64 // the place of the stream that the buffer is for, or notOffered
}

// direct returns how many of the next want bytes may go into the buffer that the peer has
// offered; 0 if they go to its ring, which has room for maxInline bytes then. Bytes of the
// image go there as far as they lie in one piece.
func (o *outbound) direct(want int) int {
	produced := o.produced.Load()
	if want <= maxInline || o.bufferAt.Load() != produced {
		return 0
	}
	want = int(min(uint64(want), uint64(o.buffer.Len)))
	if o.lent == nil {
		size := len(o.image.mem)
		want = min(want, mostPiece, size-int(produced)&(size-1))
		if want <= maxInline || o.imageRoom() < want {
			return 0
		}
	}
	return want
}

// sink is where the n bytes of the stream behind from go: into the buffer that the peer
// has offered, or to its ring.
func (o *outbound) sink(from uint64, n int, direct bool) mem.RemoteSegment {
	if direct {
		return o.buffer.Slice(0, n)
	}
	return o.peer.Slice(int(from)&int(o.peer.Len-1), n)
}
