package posts

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"godat/evd"
	"godat/hw"
)

// direction is one of an endpoint's two: requests or receives.
type direction uint8

const (
	requests direction = iota
	receives
)

func (d direction) String() string { return [...]string{"request", "receive"}[d] }

// lane is one direction of an endpoint. Its clock orders the posts of several
// posters: a post whose end is before the begin of another was posted first.
type lane struct {
	account    *account
	dir        direction
	dispatcher *consumedDispatcher // the dispatcher of its completions
	depth      int                 // of the endpoint's queue, in posts
	posters    int                 // how many of its pages have a poster
	pages      []*page
	clock      atomic.Uint64
	// bound is the clock just before the link began to end the connection; 0 if it
	// has not, or if an unreliable network may have ended it before.
	bound atomic.Uint64
	// since is the clock when the present life began; resetAt is the clock just
	// before the reset of the endpoint at its end, or 0 if there was none.
	since, resetAt uint64
	// unseen counts receives whose one-shot was released unread, so nobody sees
	// their events.
	unseen atomic.Int64
}

// page is what one poster has posted in one lane, in order.
type page struct {
	lane    *lane
	number  uint32
	window  int // the most posts outstanding, and the number of memory slots
	entries []entry
	begun   atomic.Uint32 // entries for which an event may come
	bell    chan struct{} // wakes the poster when an entry has completed
	done    atomic.Uint32 // 1 + the last entry that completed

	// Owned by the poster; between two lives, by the link's goroutine.
	head     uint32 // the first entry that is not settled
	audited  uint32
	live     uint32 // posts that were accepted; they use the memory slots in turn
	freed    uint32 // accepted posts whose memory slot is free again
	failures int
	early    bool // the poster posts before the connection is up
	shots    []shot
	arrivals order

	pump atomic.Pointer[receiver] // the receiver to call after each completion; nil for none
}

// shot is a one-shot whose event the poster has not got yet.
type shot struct {
	to    *evd.OneShot
	entry *entry
}

func (l *lane) addPage(window, size int) *page {
	number := uint32(len(l.pages))
	if l.dir == receives {
		number += requestPages
	}
	p := &page{lane: l, number: number, window: window, entries: make([]entry, size), bell: make(chan struct{}, 1)}
	l.pages = append(l.pages, p)
	return p
}

func (p *page) String() string {
	return fmt.Sprintf("%v, %v page %d", p.lane.account, p.lane.dir, p.number)
}

// name describes an entry, for complaints.
func (p *page) name(e *entry) string {
	return fmt.Sprintf("%v: %v, cookie %#x, flags %#x, %d bytes, place %d, begun %d, returned %d of %d",
		p, e.op, e.cookie, uint16(e.flags), e.length, e.place, e.begin, e.end.Load(), p.lane.clock.Load())
}

// unaudited yields the entries that were begun since the last audit.
func (p *page) unaudited(yield func(*entry) bool) {
	for i := p.audited; i < p.begun.Load(); i++ {
		if !yield(&p.entries[i]) {
			return
		}
	}
}

// left is how many entries the page has room for.
func (p *page) left() int { return len(p.entries) - int(p.begun.Load()) }

// outstanding is how many posts hold memory.
func (p *page) outstanding() int { return int(p.live - p.freed) }

// next is the entry that the next begin will begin. Its poster fills it in first;
// no other goroutine knows it.
func (p *page) next() *entry { return p.after(0) }

// after is the k-th entry after next.
func (p *page) after(k int) *entry { return &p.entries[int(p.begun.Load())+k] }

// slot is the memory slot of the k-th entry after next.
func (p *page) slot(k int) int { return (int(p.live) + k) % p.window }

// choosePlace chooses where the event of a post goes: to the account's quietPlace, if it
// may be silent.
func (p *page) choosePlace(rng *rand.Rand) place {
	l := p.lane
	switch {
	case l.account.classOf(l.dir) != anyFeed:
		return l.account.quietPlace[l.dir]
	case l.dispatcher.routed && rng.IntN(4) == 0:
		return place(1 + rng.IntN(maxRoute))
	}
	return atMain
}

// label gives the k-th entry after next its place and its cookie. It comes before
// the entry's message is written, since that begins with the cookie.
func (p *page) label(k int, at place, other uint8) *entry {
	tag := other
	if at > atMain && at <= maxRoute {
		tag = uint8(at)
	}
	e := p.after(k)
	e.place = at
	e.page, e.number, e.cookie = p, p.begun.Load()+uint32(k), p.lane.account.books.cookie(tag)
	return e
}

// begin begins the next n entries, which are filled in. It comes before their post.
func (p *page) begin(n int) {
	b := p.begun.Load()
	for i := range uint32(n) {
		e := &p.entries[b+i]
		e.begin = p.lane.clock.Add(1)
		e.state.Store(posting)
		p.lane.account.books.entries.Store(e.cookie, e)
	}
	p.begun.Store(b + uint32(n))
}

// returned records the result of the post of the last n entries: the first k were
// accepted, the others refused.
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
	books.posted[p.lane.dir].Add(int64(k))
	books.counts.add(refusals, int64(n-k))
}

// settled records that an entry has completed, and wakes the poster.
func (p *page) settled(e *entry, ok bool) {
	if ok {
		e.state.Store(succeeded)
	} else {
		e.state.Store(failed)
	}
	raise(&p.done, e.number+1)
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

// reclaim moves head over the entries that are settled, in order, and frees their
// memory slots. A suppressed entry without an event is settled when a later entry
// of the page has completed, or when the life is over (final): its failure would
// have come by then.
func (p *page) reclaim(final bool) {
	for begun := p.begun.Load(); p.head < begun; p.head++ {
		e := &p.entries[p.head]
		if !p.settles(e, final) {
			return
		}
		switch e.state.Load() {
		case succeeded:
			if e.op == hw.OpRecv {
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

// settles reports whether an entry is settled: no event for it can come any more.
func (p *page) settles(e *entry, final bool) bool {
	switch e.state.Load() {
	case succeeded, failed, refused:
		return true
	case accepted:
		return e.quiet() && (final || p.done.Load() > e.number+1)
	}
	return false
}

// order checks an order: of a lane's completions at one consumer, or of the messages
// that one page's receives take.
type order struct {
	latest uint64                              // the latest begin of an entry that has come
	last   [requestPages + receivePages]uint32 // 1 + the last entry that has come, by page
}

// follow records the next entry that comes, and says what is wrong if it is out of
// order.
func (o *order) follow(e *entry) (why string) {
	last := &o.last[e.page.number]
	if end := e.end.Load(); end != 0 && end < o.latest {
		why = fmt.Sprintf("it was posted before one that came earlier: returned at %d, the other began at %d", end, o.latest)
	}
	if *last > e.number {
		why = fmt.Sprintf("entry %d of its page came earlier, this is %d", *last-1, e.number)
	}
	o.latest = max(o.latest, e.begin)
	*last = max(*last, e.number+1)
	return why
}

// The states of an entry.
const (
	blank    uint32 = iota
	posting         // the post has not returned
	accepted        // it returned nil
	refused         // it returned an error
	settling        // a consumer is checking its event
	succeeded
	failed
)

// entry is one post in the books.
type entry struct {
	// Written by the poster before it posts.
	page     *page
	number   uint32 // on its page
	cookie   uint64
	begin    uint64 // the lane's clock before the post
	length   uint32 // bytes of the request; of a receive, the room
	op       hw.Op
	flags    hw.Flags
	place    place
	mustFail bool // the post must fail at the peer
	// invalidates says that a send invalidates a key of the peer.
	invalidates bool
	local       span
	remote      uint32 // offset in the peer's region that is read or written

	end     atomic.Uint64 // the lane's clock when the post had returned nil
	state   atomic.Uint32
	arrived atomic.Uint32 // of a send: how often the peer has received it

	// Written by the consumer that claimed the entry.
	from   *entry // of a receive: the send
	came   hw.Op  // of the event, and its length
	octets uint32
}

// place is where the event of an entry must come.
type place uint8

const (
	atMain   place = 0 // 1 to maxRoutes: that route
	atShot   place = 0xfe
	nowhere  place = 0xff // at a one-shot that was released unread
	maxRoute       = 3
)

// isOpen reports whether an event for the entry may still come.
func (e *entry) isOpen() bool {
	s := e.state.Load()
	return s == posting || s == accepted
}

// isPending reports whether the entry is not settled yet.
func (e *entry) isPending() bool { return e.isOpen() || e.state.Load() == settling }

// claim lets one consumer settle the entry: the one for which it returns posting or
// accepted. Any other gets the state that forbids it.
func (e *entry) claim() (was uint32) {
	for {
		was = e.state.Load()
		if was != posting && was != accepted || e.state.CompareAndSwap(was, settling) {
			return was
		}
	}
}

// quiet reports whether the entry may end without an event.
func (e *entry) quiet() bool { return e.flags&hw.Suppress != 0 || e.place == nowhere }
