package ledger

import (
	dat "godat/runtime"
)

// follow checks that the message which receive e took is in order after those that
// earlier receives of page p took.
func (a *account) follow(p *page, e *entry) {
	s := e.from
	if s == nil {
		return
	}
	q, _, i := a.books.find(s.cookie)
	if q == nil {
		a.books.complain(Stranger, "%s: the books no longer know the send %#x that it received", p.name(e), s.cookie)
		return
	}
	if why := p.arrivals.follow(q, s, i); why != "" {
		a.books.complain(Disorder, "message %s: %s", q.name(s), why)
	}
}

// arrival checks a received message when its event comes: its sender and its
// length, that it came once, and that the event is solicited if the send was.
func (a *account) arrival(p *page, e *entry, ev *dat.Event) {
	b, n := a.books, ev.Length
	if n < headerSize {
		return // the message is too short to hold a cookie
	}
	cookie := a.recv.sender(e.local)
	q, s, _ := b.find(cookie)
	switch {
	case s == nil:
		b.complain(Stranger, "%s: the message begins with %#x, which is no cookie", p.name(e), cookie)
		return
	case q.lane.account != a.peer || q.lane.dir != requests || s.op != opSend:
		b.complain(Mismatch, "%s: it received what was not sent to it: %s", p.name(e), q.name(s))
		return
	case s.length != n:
		b.complain(Mismatch, "%s: %d bytes, of %s", p.name(e), n, q.name(s))
		return
	case (s.flags&dat.SolicitedWait != 0) != (ev.Flags&dat.EventSolicited != 0):
		b.complain(Mismatch, "%s: flags %#x, of %s", p.name(e), uint16(ev.Flags), q.name(s))
	}
	if s.arrived.Add(1) != 1 {
		b.complain(Twice, "%s: it received the message of %s, as another did", p.name(e), q.name(s))
		return
	}
	e.from = s
}
