package posts

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"godat/ep"
	"godat/hw"
)

// character is the choice of an endpoint's completion flags.
type character uint8

const (
	plain     character = iota
	silent              // both directions may post UNSIGNALLED
	solicited           // a receive notifies only if its sender asked for it
	characters
)

func (c character) String() string { return [...]string{"plain", "silent", "solicited"}[c] }

const (
	requestPages  = 4 // one for each of three posters, and the link's own
	receivePages  = 2
	linkPage      = requestPages - 1
	perLife       = 400 // a poster's posts in one life, at most
	requestLeeway = 200 // the posts that may follow: closing posts, posts after the end
	requestRoom   = 2 * (perLife + requestLeeway)
	receiveRoom   = 2 * (3*perLife + 600)
)

// account is an endpoint in the books: its lanes, its memory and its dispatchers.
type account struct {
	// Immutable after openAccount.
	books *books
	w     *world
	home  *home // the adapter and zone of the endpoint
	id    uint32
	ep    *ep.Endpoint
	kind  character
	jumpy bool // a send fails after jumpiness without a receive at the peer
	lanes [2]lane
	conn  *consumedDispatcher
	own   []*consumedDispatcher // the dispatchers that no other account uses
	// quietPlace is the one place of all events of a lane whose events may be silent,
	// because a post is UNSIGNALLED or a receive unsolicited: a silent event stays
	// queued until one that notifies comes to the same place.
	quietPlace [2]place

	out  *region // sources of sends and writes, sinks of reads: slots by page
	recv *region // receive buffers: slots by page
	in   *region // where the peer writes to and reads from: slots by the peer's page

	exposed exposed

	// The link sets these between two lives, when receives that were posted behind a reset may still be flushed.
	peer atomic.Pointer[account]
	life atomic.Pointer[life]

	book    connections
	closing atomic.Bool // the link has called Close, or is about to
	closed  bool        // Close has returned; only the link uses this
	sealed  atomic.Bool // it is no more in the books
}

func (a *account) String() string {
	return fmt.Sprintf("endpoint %d (%v, %s)", a.id, a.kind, a.home.name)
}

// slotAt is the offset of a page's memory slot in out, recv and the peer's in.
func (p *page) slotAt(slot int) int {
	return (int(p.number%requestPages)*maxWindow + slot) * slotSize
}

// Behind the slots of out and in lies the memory of long reads.
const (
	outSize = requestPages * maxWindow * slotSize
	inSize  = outSize + 8
)

// openAccount makes an endpoint, its memory and its dispatchers. On failure it adds
// a complaint and returns nil.
func (l *link) openAccount(side int, rng *rand.Rand) *account {
	w := l.w
	a := &account{books: &w.books, w: w, home: w.ias[l.adapters[side]].homes[rng.IntN(zonesPerAdapter)]}
	a.id = w.books.ids.Add(1)
	a.kind = character(rng.IntN(int(characters)))
	a.jumpy = rng.IntN(8) == 0
	attr := a.attributes(rng)
	if !a.chooseDispatchers(rng) || !a.registerAll(rng) {
		return nil
	}
	err := w.retry(func() (err error) {
		a.ep, err = a.home.ia.NewEndpoint(ep.Config{
			PZ: a.home.pz, Recv: a.lanes[receives].dispatcher.disp, Request: a.lanes[requests].dispatcher.disp, Conn: a.conn.disp, Attr: &attr,
		})
		return err
	})
	if !w.must(err, "%v: making it", a) {
		return nil
	}
	for d := range a.lanes {
		if l := &a.lanes[d]; l.dispatcher.routed && a.classOf(l.dir) != anyFeed {
			a.quietPlace[d] = [...]place{atMain, 1, 3}[rng.IntN(3)]
		}
	}
	w.books.known(a)
	return a
}

// attributes chooses the endpoint's attributes, and adds pages that fit them.
func (a *account) attributes(rng *rand.Rand) (attr ep.Attr) {
	depths := [...]int{8, 16, 32, 64}
	requestDepth, receiveDepth := depths[rng.IntN(len(depths))], depths[1+rng.IntN(len(depths)-1)]
	posters, receivers := 1+rng.IntN(requestPages-1), 1+rng.IntN(receivePages)
	attr.MaxRequestDTOs, attr.MaxRecvDTOs = requestDepth, receiveDepth
	attr.MaxRecvIOV, attr.MaxRequestIOV = maxSegments, maxSegments
	attr.MaxReadIn, attr.MaxReadOut = 1+rng.IntN(8), 1+rng.IntN(8)
	attr.DrainTimeout = a.w.cfg.Patience
	attr.ReceiverNotReady = a.w.cfg.Patience
	if a.jumpy {
		attr.ReceiverNotReady = jumpiness
	}
	switch a.kind {
	case silent:
		attr.RecvFlags, attr.RequestFlags = hw.Unsignalled, hw.Unsignalled
	case solicited:
		attr.RecvFlags = hw.SolicitedWait
	default: // plain: every completion notifies
	}
	for dir, depth := range [...]int{requestDepth, receiveDepth} {
		a.lanes[dir].account, a.lanes[dir].dir, a.lanes[dir].depth = a, direction(dir), depth
	}
	a.lanes[requests].posters = posters
	for range requestPages - 1 {
		window := 4 + rng.IntN(min(maxWindow, 2*requestDepth)-3)
		a.lanes[requests].addPage(window, requestRoom)
	}
	a.lanes[requests].addPage(8, requestRoom)
	for range receivers {
		a.lanes[receives].addPage(min(maxWindow, receiveDepth/receivers), receiveRoom)
	}
	return attr
}

// jumpiness is how long a send of a jumpy endpoint waits for a receive of the peer.
const jumpiness = 30 * time.Millisecond

// crowded reports whether the lane's posters may find the queue full.
func (l *lane) crowded() bool { return l.windows() > l.depth }

// windows is an upper bound of the lane's posts whose events the books have not
// seen.
func (l *lane) windows() (sum int) {
	for i, p := range l.pages {
		if l.dir == receives || i < l.posters || i == linkPage {
			sum += p.window
		}
	}
	return sum
}

// room is how many places the lane's events may take in a dispatcher.
func (l *lane) room() int { return max(l.depth, l.windows()) }

// registerAll registers the account's memory.
func (a *account) registerAll(rng *rand.Rand) bool {
	reg := func(size int, priv hw.Privileges) *region {
		return a.w.register(a.home.pz, size, priv, rng.IntN(3) == 0, rng)
	}
	a.out = reg(outSize+longRead, hw.LocalRead|hw.LocalWrite)
	a.recv = reg(receivePages*maxWindow*slotSize, hw.LocalWrite)
	a.in = reg(inSize+longRead, hw.LocalRead|hw.RemoteRead|hw.RemoteWrite)
	return a.out != nil && a.recv != nil && a.in != nil
}

// room reports whether the account's pages have entries enough for one more life.
func (a *account) room() bool {
	for _, p := range a.lanes[requests].pages {
		if p.left() < perLife+requestLeeway {
			return false
		}
	}
	for _, p := range a.lanes[receives].pages {
		if p.left() < receiveRoom/2 {
			return false
		}
	}
	return true
}

// free frees the memory and the dispatchers of an endpoint that is closed, and
// seals its account.
func (a *account) free() {
	for _, r := range [...]*region{a.out, a.recv, a.in} {
		if r != nil {
			a.w.must(r.lmr.Free(), "%v: freeing its memory", a)
		}
	}
	a.freeExposed()
	for _, h := range a.own {
		h.close()
	}
	a.books.seal(a)
}
