package ledger

import (
	"bytes"
	"slices"
	"sync"

	dat "godat/runtime"
)

// phase is where an account's connection stands, by its events.
type phase uint8

const (
	idle   phase = iota
	trying       // Connect or Accept was called
	up           // ESTABLISHED came
	over         // the outcome was another one, or the end came
)

func (p phase) String() string { return [...]string{"idle", "trying", "up", "over"}[p] }

// connections is the book of an endpoint's connection events.
type connections struct {
	mu      sync.Mutex
	phase   phase
	may     []dat.EventNumber // outcomes of the attempt under way
	private []byte            // what comes with the outcome, when it is ours to know
	heard   chan dat.EventNumber
}

// heardKept is more than an endpoint hears in a life.
const heardKept = 8

// try begins an attempt that may have these outcomes. The data that comes with
// ESTABLISHED or PEER_REJECTED is private.
func (a *account) try(private []byte, may ...dat.EventNumber) {
	c := &a.book
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase, c.may, c.private = trying, may, private
	c.heard = make(chan dat.EventNumber, heardKept)
}

// fail takes try back: the call failed.
func (a *account) fail() { a.setPhase(idle) }

func (a *account) setPhase(p phase) {
	a.book.mu.Lock()
	defer a.book.mu.Unlock()
	a.book.phase = p
}

func (a *account) phaseNow() phase {
	a.book.mu.Lock()
	defer a.book.mu.Unlock()
	return a.book.phase
}

// connection enters a connection event.
func (o *outlet) connection(ev *dat.Event) {
	w := o.hub.w
	a := w.books.of(dat.EndpointOf(*ev))
	if a == nil {
		w.complain(Stranger, "%s: a connection event of an endpoint that was closed: %v", o.hub.name, *ev)
		return
	}
	if o.hub != a.conn || o.place != atMain {
		w.complain(Misplaced, "%v: %v at %s", a, *ev, o.hub.name)
	}
	s := o.sight(a)
	s.up, s.said = ev.Number == dat.Established, ev.Number
	if ev.Number == dat.Disconnected || ev.Number == dat.Broken && !w.cfg.Unreliable && !a.fragile() {
		o.late(a, ev.Number)
	}
	c := &a.book
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.phase
	legal := was == trying && slices.Contains(c.may, ev.Number) ||
		was == up && (ev.Number == dat.Disconnected || ev.Number == dat.Broken)
	if !legal {
		w.complain(Connection, "%v: %v, when it was %v and might hear %v", a, *ev, was, c.may)
		return
	}
	if was == up && ev.Number == dat.Broken && !a.mayBreak() {
		w.complain(Causeless, "%v: %v, and nothing was done that breaks a connection (%v)", a, *ev, a.life.Load())
	}
	if data, _ := ev.Connection(); was == trying && !bytes.Equal(data.Private, c.private) &&
		(ev.Number == dat.Established || ev.Number == dat.PeerRejected) {
		w.complain(Connection, "%v: %v with private data %x, not %x", a, *ev, data.Private, c.private)
	}
	c.phase = over
	if ev.Number == dat.Established {
		c.phase = up
	}
	c.heard <- ev.Number
}

// mayBreak reports whether there is a cause for BROKEN.
func (a *account) mayBreak() bool {
	lf := a.life.Load()
	return a.w.cfg.Unreliable || a.fragile() || lf != nil && lf.ending.Load() && lf.breaks
}

// late demands, when the end of a connection is announced that a side has ended,
// that everything that was posted before that has completed, where it completes at
// the same dispatcher. A connection that fell with its adapter ended before the
// side, perhaps, got to it.
func (o *outlet) late(a *account, end dat.EventNumber) {
	if o.hub.w.books.fallen.Load() {
		return
	}
	for d := range a.lanes {
		l := &a.lanes[d]
		bound := l.bound.Load()
		if l.hub != o.hub || bound == 0 {
			continue
		}
		for _, p := range l.pages {
			for i := range p.begun.Load() {
				e := &p.entries[i]
				if returned := e.end.Load(); returned != 0 && returned < bound && e.place == atMain && !e.quiet() && e.isOpen() {
					o.hub.w.complain(Misplaced, "%s: it was posted before the end of the connection (%d), and has not completed at %v, which comes at %s, too",
						p.name(e), bound, end, o.hub.name)
				}
			}
		}
	}
}
