package posts

import (
	"bytes"
	"slices"
	"sync"

	"godat/ep"
	"godat/hw/event"
)

// phase is how far an account's connection is, by the events that came.
type phase uint8

const (
	idle   phase = iota
	trying       // Connect or Accept was called
	up           // ESTABLISHED came
	over         // another outcome came, or the end
)

func (p phase) String() string { return [...]string{"idle", "trying", "up", "over"}[p] }

// connections is the book of an endpoint's connection events.
type connections struct {
	mu       sync.Mutex
	phase    phase
	may      []event.Number // the possible outcomes of the attempt under way
	private  []byte         // the private data that must come with ESTABLISHED or PEER_REJECTED
	outcomes chan event.Number
}

// outcomesKept is more than the connection events of one life.
const outcomesKept = 8

// try begins an attempt whose outcome is one of may. An ESTABLISHED or
// PEER_REJECTED must come with the data private.
func (a *account) try(private []byte, may ...event.Number) {
	c := &a.book
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase, c.may, c.private = trying, may, private
	c.outcomes = make(chan event.Number, outcomesKept)
}

// fail undoes try: the call failed.
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

// connection checks a connection event against the account's book.
func (o *consumer) connection(ev *event.Event) {
	w := o.dispatcher.w
	a := w.books.of(ep.Of(*ev))
	if a == nil {
		w.complain(Stranger, "%s: a connection event of an endpoint that was closed: %v", o.dispatcher.name, *ev)
		return
	}
	if o.dispatcher != a.conn || o.place != atMain {
		w.complain(Misplaced, "%v: %v at %s", a, *ev, o.dispatcher.name)
	}
	w.Step(a.String(), "%v", ev.Number)
	s := o.sight(a)
	s.up, s.said = ev.Number == event.Established, ev.Number
	if ev.Number == event.Disconnected || ev.Number == event.Broken && !w.cfg.Unreliable && !a.fragile() {
		o.late(a, ev.Number)
	}
	c := &a.book
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.phase
	legal := was == trying && slices.Contains(c.may, ev.Number) ||
		was == up && (ev.Number == event.Disconnected || ev.Number == event.Broken)
	if !legal {
		w.complain(Connection, "%v: %v, when it was %v and the events that may come are %v", a, *ev, was, c.may)
		return
	}
	if was == up && ev.Number == event.Broken && !a.mayBreak() {
		w.complain(Causeless, "%v: %v, and nothing was done that breaks a connection (%v)", a, *ev, a.life.Load())
	}
	if private := ev.Private(); was == trying && !bytes.Equal(private, c.private) &&
		(ev.Number == event.Established || ev.Number == event.PeerRejected) {
		w.complain(Connection, "%v: %v with private data %x, not %x", a, *ev, private, c.private)
	}
	c.phase = over
	if ev.Number == event.Established {
		c.phase = up
	}
	c.outcomes <- ev.Number
}

// mayBreak reports whether the connection has a cause to end with BROKEN.
func (a *account) mayBreak() bool {
	lf := a.life.Load()
	return a.w.cfg.Unreliable || a.fragile() || lf != nil && lf.ending.Load() && lf.breaks
}

// late complains of posts that had returned before the link began to end the
// connection (lane.bound) and have not completed when the end event comes, where
// both come to the same dispatcher. It checks nothing once the program closes the
// adapters: then the connection may have ended before the link got to this side.
func (o *consumer) late(a *account, end event.Number) {
	if o.dispatcher.w.books.closingAbruptly.Load() {
		return
	}
	for d := range a.lanes {
		l := &a.lanes[d]
		bound := l.bound.Load()
		if l.dispatcher != o.dispatcher || bound == 0 {
			continue
		}
		for _, p := range l.pages {
			for i := range p.begun.Load() {
				e := &p.entries[i]
				if returned := e.end.Load(); returned != 0 && returned < bound && e.place == atMain && !e.quiet() && e.isOpen() {
					o.dispatcher.w.complain(Misplaced, "%s: it was posted before the end of the connection (%d), and has not completed at %v, which comes at %s, too",
						p.name(e), bound, end, o.dispatcher.name)
				}
			}
		}
	}
}
