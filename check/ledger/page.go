package ledger

import (
	"fmt"
	"sync/atomic"

	dat "godat/runtime"
)

// direction is one of an endpoint's two.
type direction uint8

const (
	requests direction = iota
	receives
)

func (d direction) String() string { return [...]string{"request", "receive"}[d] }

// firstReceivePage is the number of a receive lane's first page.
const firstReceivePage = 1 << (pageBits - 1)

// lane is a direction of an endpoint. Its clock orders what posters did: a post
// whose end is before another's begin came first.
type lane struct {
	account *account
	dir     direction
	hub     *hub // its dispatcher
	depth   int  // of the endpoint's queue
	posters int  // how many of its pages are posted from
	pages   []*page
	clock   atomic.Uint64
	// bound is what the clock said before anything was done to end the
	// connection; 0 if nothing was.
	bound atomic.Uint64
	// since and resetAt are what the clock said when the present life began, and
	// before the endpoint was reset at the end of it; 0 if it was not.
	since, resetAt uint64
	// blind counts receives whose events nobody sees.
	blind atomic.Int64
}

// page is what one poster has posted in one lane, in order.
type page struct {
	lane    *lane
	number  uint32
	window  int // posts outstanding at most, and memory slots
	entries []entry
	begun   atomic.Uint32 // entries that an event may be for
	bell    chan struct{} // rings when one was settled
	done    atomic.Uint32 // 1 + the last entry that completed

	// The poster's; between two lives, the auditor's.
	head     uint32 // the first entry that is not settled
	audited  uint32
	live     uint32 // posts that were accepted; each has a memory slot, in turn
	freed    uint32 // of them, those that are settled
	failures int
	early    bool // its poster does not wait for the connection
	shots    []shot
	arrivals order

	pump atomic.Pointer[receiver] // who posts receives from upcalls; nil for none
}

// shot is a one-shot request that is out.
type shot struct {
	to    *dat.OneShot
	entry *entry
}

func (l *lane) addPage(window, size int) *page {
	number := uint32(len(l.pages))
	if l.dir == receives {
		number += firstReceivePage
	}
	p := &page{lane: l, number: number, window: window, entries: make([]entry, size), bell: make(chan struct{}, 1)}
	l.pages = append(l.pages, p)
	return p
}

func (p *page) String() string {
	return fmt.Sprintf("%v, %v page %d", p.lane.account, p.lane.dir, p.number)
}

// name is an entry's place in the books, for complaints.
func (p *page) name(e *entry) string {
	return fmt.Sprintf("%v: %v, cookie %#x, flags %#x, %d bytes, place %d, begun %d, returned %d of %d",
		p, e.op, e.cookie, uint16(e.flags), e.length, e.place, e.begin, e.end.Load(), p.lane.clock.Load())
}

// left is how many entries the page has room for.
func (p *page) left() int { return len(p.entries) - int(p.begun.Load()) }

// outstanding is how many posts hold memory.
func (p *page) outstanding() int { return int(p.live - p.freed) }

// next is the entry that begin will begin, to be filled in first. Only its poster
// knows of it.
func (p *page) next() *entry { return p.after(0) }

// after is the k-th entry after next.
func (p *page) after(k int) *entry { return &p.entries[int(p.begun.Load())+k] }

// slot is the memory slot of an entry that is about to begin, k after next.
func (p *page) slot(k int) int { return (int(p.live) + k) % p.window }

// label gives the k-th entry after next its cookie: what it sends depends on it.
func (p *page) label(k int, at place, other uint8) *entry {
	tag := other
	if at > atMain && at <= maxRoute {
		tag = uint8(at)
	}
	e := p.after(k)
	e.place = at
	e.cookie = encode(p.lane.account.books.salt, tag, p.lane.account.id, p.number, p.begun.Load()+uint32(k))
	return e
}

// begin begins the next n entries, which have been filled in.
func (p *page) begin(n int) {
	b := p.begun.Load()
	for i := range uint32(n) {
		e := &p.entries[b+i]
		e.begin = p.lane.clock.Add(1)
		e.state.Store(posting)
	}
	p.begun.Store(b + uint32(n))
}

// returned notes what the post of the last n entries returned: the first k were
// accepted.
func (p *page) returned(n, k int) {
	b := p.begun.Load() - uint32(n)
	now := p.lane.clock.Load()
	books := p.lane.account.books
	for i := range uint32(n) {
		e := &p.entries[b+i]
		if int(i) < k {
			e.end.Store(now)
			e.state.CompareAndSwap(posting, accepted)
			continue
		}
		if !e.state.CompareAndSwap(posting, refused) {
			books.complain(Refused, "%s: it was refused, and completed", p.name(e))
		}
	}
	p.live += uint32(k)
	books.counts.posted[p.lane.dir].Add(int64(k))
	books.counts.refused.Add(int64(n - k))
}

// settled notes that an entry has completed, and wakes the poster.
func (p *page) settled(e *entry, i uint32, ok bool) {
	if ok {
		e.state.Store(succeeded)
	} else {
		e.state.Store(failed)
	}
	raise(&p.done, i+1)
	select {
	case p.bell <- struct{}{}:
	default:
	}
}

// raise makes x at least n.
func raise(x *atomic.Uint32, n uint32) {
	for {
		old := x.Load()
		if old >= n || x.CompareAndSwap(old, n) {
			return
		}
	}
}

// reclaim passes over the entries that are settled, in order, whose memory may then
// be used again. A suppressed entry is settled by a later one that completed. At the
// end of a life it is settled without: its failure would have come by now.
func (p *page) reclaim(final bool) {
	for begun := p.begun.Load(); p.head < begun; p.head++ {
		e := &p.entries[p.head]
		if !p.settles(e, p.head, final) {
			return
		}
		switch e.state.Load() {
		case succeeded:
			if e.op == dat.OpRecv {
				p.lane.account.follow(p, e)
			}
		case refused:
			continue
		case failed:
			p.failures++
		}
		p.freed++
	}
}

// settles reports whether nothing more can become of entry i.
func (p *page) settles(e *entry, i uint32, final bool) bool {
	switch e.state.Load() {
	case succeeded, failed, refused:
		return true
	case accepted:
		return e.quiet() && (final || p.done.Load() > i+1)
	}
	return false
}

// order follows what comes one after the other at one place: completions of a
// lane, or its messages.
type order struct {
	latest uint64                // begin of the one that began last
	last   [1 << pageBits]uint32 // 1 + the last entry, by page
}

// follow notes the next one, and says what is wrong with its coming now.
func (o *order) follow(p *page, e *entry, i uint32) (why string) {
	if end := e.end.Load(); end != 0 && end < o.latest {
		why = fmt.Sprintf("it was posted before one that came earlier: returned at %d, the other began at %d", end, o.latest)
	}
	if o.last[p.number] > i {
		why = fmt.Sprintf("entry %d of its page came earlier, this is %d", o.last[p.number]-1, i)
	}
	o.latest = max(o.latest, e.begin)
	o.last[p.number] = max(o.last[p.number], i+1)
	return why
}
