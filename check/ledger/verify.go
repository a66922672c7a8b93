package ledger

import (
	"godat/evd"
	dat "godat/runtime"
)

// verify checks the bytes of an entry that succeeded.
func (a *account) verify(p *page, e *entry) {
	n := int(e.length)
	peer := a.peer
	bad := -1
	switch e.body {
	case bodyNone:
		return
	case bodyMessage:
		a.verifyMessage(p, e)
		return
	case bodyWrite:
		if a.books.early || peer == nil {
			return
		}
		bad = differs(peer.in.buf[e.remote:][:n], e.cookie, 0)
	case bodyBig:
		if a.books.early || peer == nil {
			return
		}
		bad = differs(peer.bigIn.buf[e.remote:][:n], bigKey, int(e.local.at[0].off))
	case bodyCopy:
		if a.books.early || peer == nil {
			return
		}
		bad = differs(peer.in.buf[e.remote:][:n], peer.home.library.key, int(e.source))
	case bodyRead:
		if peer == nil {
			return
		}
		bad = a.out.differs(&e.local, n, peer.home.library.key, int(e.source))
	}
	a.books.counts.bytes.Add(int64(n))
	if bad >= 0 {
		a.books.complain(Payload, "%s: byte %d of what it moved is wrong", p.name(e), bad)
	}
}

// bigKey is what large regions hold.
const bigKey = 0x6a09e667f3bcc908

// verifyMessage checks a message, and that it is not out of order among those
// that this page's receives have got.
func (a *account) verifyMessage(p *page, e *entry) {
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
	a.books.counts.bytes.Add(int64(e.got))
	if bad := a.recv.differs(&e.local, int(e.got), s.cookie, 0); bad >= 0 {
		a.books.complain(Payload, "%s: byte %d of the message is wrong; it came from %s", p.name(e), bad, q.name(s))
	}
}

// arrival notes a message, when its event comes: who sent it, that it came once,
// as solicited or not, and that what was written before it is there.
func (a *account) arrival(p *page, e *entry, ev *dat.Event) {
	b, n := a.books, ev.Length
	e.got = n
	if n < headerSize {
		return // it is too short to say which it is
	}
	cookie := a.recv.header(&e.local)
	q, s, _ := b.find(cookie)
	switch {
	case s == nil:
		b.complain(Payload, "%s: the message begins with %#x, which is no cookie", p.name(e), cookie)
		return
	case q.lane.account != a.peer || q.lane.dir != requests || s.op != opSend:
		b.complain(Mismatch, "%s: it received what was not sent to it: %s", p.name(e), q.name(s))
		return
	case s.length != n:
		b.complain(Mismatch, "%s: %d bytes, of %s", p.name(e), n, q.name(s))
		return
	case (s.flags&dat.SolicitedWait != 0) != (ev.Flags&evd.Solicited != 0):
		b.complain(Mismatch, "%s: flags %#x, of %s", p.name(e), uint16(ev.Flags), q.name(s))
	}
	if s.arrived.Add(1) != 1 {
		b.complain(Twice, "%s: it received the message of %s, as another did", p.name(e), q.name(s))
		return
	}
	e.from = s
	if s.mail > 0 {
		a.collect(p, q, s)
	}
}

// collect finds what was written before the message that tells of it.
func (a *account) collect(p, q *page, s *entry) {
	m := int(s.mail) - 1
	at := q.mailbox(m)
	if bad := differs(a.in.buf[at:][:s.told], s.cookie, 0); bad >= 0 {
		a.books.complain(Payload, "%s: a message came before the write behind which it was sent: %s", p, q.name(s))
	}
	a.books.counts.mailed.Add(1)
	q.mail[m].Store(false)
}
