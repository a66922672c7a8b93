package posts

import (
	"maps"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
)

const opSend = hw.OpSend

// take enters an event into the books.
func (o *consumer) take(ev *event.Event) {
	w := o.dispatcher.w
	switch {
	case ev.Number == event.DTOCompletion:
		o.completion(ev)
	case ev.Number == event.ConnectionRequest:
		w.requested(ev)
	case ev.Number.Stream() == event.StreamConnection:
		o.connection(ev)
	case ev.Number == event.SoftwareEvent:
		payload, _ := ev.Software()
		if m, ok := payload.(*mark); ok && m.got != nil {
			o.last = o.last || m.last
			close(m.got)
		}
	default:
		w.complain(Alarm, "%s: %v", o.dispatcher.name, *ev)
	}
}

// sight returns what the consumer has seen of an account.
func (o *consumer) sight(a *account) *sight {
	s := o.seen[a]
	if s == nil {
		if len(o.seen) >= sightsKept {
			maps.DeleteFunc(o.seen, func(a *account, _ *sight) bool { return a.sealed.Load() })
		}
		s = new(sight)
		o.seen[a] = s
	}
	return s
}

// unannounced reports whether completions may come without ESTABLISHED: an endpoint
// whose adapter is closed while it connects announces nothing any more, and reports
// what it had received by then.
func (s *sight) unannounced(b *books) bool { return s.said == 0 && b.closingAbruptly.Load() }

// sightsKept is how many accounts an consumer remembers before it forgets those that
// are sealed.
const sightsKept = 256

// style is how the consumer gets events.
func (o *consumer) style() style {
	switch o.place {
	case atMain:
		return o.dispatcher.style
	case atShot:
		return byShot
	default:
		return byRoute
	}
}

// completion settles the entry of a completion.
func (o *consumer) completion(ev *event.Event) {
	b := &o.dispatcher.w.books
	e := b.find(ev.Cookie)
	if e == nil {
		b.complain(Stranger, "%s: nobody has posted this, or its endpoint was closed and all of it accounted for: %v", o.dispatcher.name, *ev)
		return
	}
	p := e.page
	switch was := e.claim(); was {
	case posting, accepted:
	case refused:
		b.complain(Refused, "%s: it was refused, and completed: %v", p.name(e), *ev)
		return
	default:
		b.complain(Twice, "%s: it completed again: %v", p.name(e), *ev)
		return
	}
	b.counts.add(o.style(), 1)
	b.counts.add(ev.Status, 1)
	a := p.lane.account
	ok := ev.Status == hw.StatusSuccess
	e.came, e.octets = ev.Op, ev.Length
	o.compare(p, e, ev)
	o.locate(p, e)
	if o.place != atShot {
		s := o.sight(a)
		if why := s.orders[p.lane.dir].follow(e); why != "" {
			b.complain(Disorder, "%s: at %s, %s", p.name(e), o.dispatcher.name, why)
		}
		if a.conn == o.dispatcher && o.place == atMain && !s.up && ev.Status != hw.StatusFlushed && !s.unannounced(b) {
			b.complain(Misplaced, "%s: %v outside ESTABLISHED and the end, which come at the same dispatcher, where the last was %v", p.name(e), ev.Status, s.said)
		}
	}
	if !ok {
		a.excuse(p, e, ev.Status)
	} else if e.op == hw.OpRecv {
		a.arrival(p, e, ev)
	}
	p.settled(e, ok)
	a.replenish(p)
}

// compare compares an event with the entry's post.
func (o *consumer) compare(p *page, e *entry, ev *event.Event) {
	b := &o.dispatcher.w.books
	if ep.Of(*ev) != p.lane.account.ep || ev.Op != e.op && (e.op != hw.OpRecv || ev.Op != hw.OpRecvInvalidate) {
		b.complain(Mismatch, "%s: the event is of another endpoint or operation: %v", p.name(e), *ev)
	}
	if ev.Key != 0 && ev.Flags&(event.HasImm|event.Invalidated) == 0 {
		b.complain(Mismatch, "%s: the event has the key %#x of nothing: %v", p.name(e), ev.Key, *ev)
	}
	if ev.Status != hw.StatusSuccess {
		if ev.Length != 0 {
			b.complain(Mismatch, "%s: it failed, and moved %d bytes", p.name(e), ev.Length)
		}
		return
	}
	switch {
	case e.mustFail && !b.early:
		b.complain(Mismatch, "%s: it had to fail: %v", p.name(e), *ev)
	case e.flags&hw.Suppress != 0:
		b.complain(Unasked, "%s: it was suppressed, and reported success", p.name(e))
	case e.op == hw.OpRecv && ev.Length > e.length, e.op != hw.OpRecv && ev.Length != e.length:
		b.complain(Mismatch, "%s: %d bytes: %v", p.name(e), ev.Length, *ev)
	}
}

// locate checks that the event came to the place that the entry names.
func (o *consumer) locate(p *page, e *entry) {
	if o.dispatcher == p.lane.dispatcher && (o.place == e.place || e.place == churned && o.place == atMain) {
		return
	}
	p.lane.account.books.complain(Misplaced, "%s: it came at place %d of %s", p.name(e), o.place, o.dispatcher.name)
}

// excuse checks that a failure has a cause, and that the status fits the cause.
func (a *account) excuse(p *page, e *entry, status hw.Status) {
	lf := a.life.Load()
	ending := lf != nil && lf.ending.Load()
	if !ending && !a.w.cfg.Unreliable && !a.fragile() && !a.closing.Load() {
		a.books.complain(Causeless, "%s: %v, and nothing was done (%v)", p.name(e), status, lf)
		return
	}
	if lf != nil && lf.promised(p, e) {
		a.books.complain(Causeless, "%s: %v, and it was posted before its own side disconnected gracefully (at %d; %v)",
			p.name(e), status, p.lane.bound.Load(), lf)
	}
	may := statuses(hw.StatusFlushed)
	if lf != nil {
		may |= lf.may
	}
	if a.w.cfg.Unreliable {
		may |= unreliableStatuses
	}
	if a.fragile() {
		may |= statuses(hw.StatusReceiverNotReady)
	}
	if may>>status&1 == 0 {
		a.books.complain(Causeless, "%s: %v does not fit what was done (%v)", p.name(e), status, lf)
	}
}

// fragile reports whether a receiver that is late may break the connection.
func (a *account) fragile() bool {
	peer := a.peer.Load()
	return a.w.hasty || a.jumpy || peer != nil && peer.jumpy
}

// statusSet is a set of completion statuses.
type statusSet uint32

func statuses(list ...hw.Status) (s statusSet) {
	for _, x := range list {
		s |= 1 << x
	}
	return s
}

// unreliableStatuses are the statuses that the faults of an unreliable provider
// cause.
var unreliableStatuses = statuses(hw.StatusTransport, hw.StatusRemoteResponder)

// follow checks that the message which receive e took is in order after those that
// earlier receives of page p took.
func (a *account) follow(p *page, e *entry) {
	s := e.from
	if s == nil {
		return
	}
	if a.books.find(s.cookie) == nil {
		a.books.complain(Stranger, "%s: the books no longer know the send %#x that it received", p.name(e), s.cookie)
		return
	}
	if why := p.arrivals.follow(s); why != "" {
		a.books.complain(Disorder, "message %s: %s", s.page.name(s), why)
	}
}

// arrival checks a received message when its event comes: its sender and its
// length, that it came once, and that the event is solicited if the send was.
func (a *account) arrival(p *page, e *entry, ev *event.Event) {
	b, n := a.books, ev.Length
	if n < headerSize {
		return // the message is too short to hold a cookie
	}
	cookie := a.recv.sender(e.local)
	s := b.find(cookie)
	if s == nil {
		b.complain(Stranger, "%s: the message begins with %#x, which is no cookie", p.name(e), cookie)
		return
	}
	q := s.page
	switch {
	case q.lane.account != a.peer.Load() || q.lane.dir != requests || s.op != opSend:
		b.complain(Mismatch, "%s: it received what was not sent to it: %s", p.name(e), q.name(s))
		return
	case s.length != n:
		b.complain(Mismatch, "%s: %d bytes, of %s", p.name(e), n, q.name(s))
		return
	case (s.flags&hw.SolicitedWait != 0) != (ev.Flags&event.Solicited != 0):
		b.complain(Mismatch, "%s: flags %#x, of %s", p.name(e), uint16(ev.Flags), q.name(s))
	case s.invalidates != (ev.Op == hw.OpRecvInvalidate):
		b.complain(Mismatch, "%s: it received as %v, of %s", p.name(e), ev.Op, q.name(s))
	}
	if s.arrived.Add(1) != 1 {
		b.complain(Twice, "%s: it received the message of %s, as another did", p.name(e), q.name(s))
		return
	}
	e.from = s
}
