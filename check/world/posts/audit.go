package posts

import (
	"time"

	"godat/ep"
	"godat/hw"
)

// audit checks all posts of the link's two sides since the last audit. Nothing is
// posted meanwhile, and the books hold every event that was delivered.
func (l *link) audit() {
	for _, a := range l.sides {
		if a != nil {
			a.lanes[requests].audit()
			a.lanes[receives].audit()
		}
	}
	for _, a := range l.sides {
		if a == nil {
			continue
		}
		if a.peer.Load() != nil && !a.books.early {
			a.auditArrivals()
		}
		a.conclude()
	}
}

// conclude ends the audit of an account: it reclaims the pages, and checks that an
// endpoint with nothing outstanding reports itself idle.
func (a *account) conclude() {
	for d := range a.lanes {
		for _, p := range a.lanes[d].pages {
			p.reclaim(direction(d) == requests || a.closed)
			p.audited = p.head
			if left := p.outstanding(); a.closed && left > 0 {
				a.books.accuse(Lost, "%v: %d entries of a closed endpoint are not settled", p, left)
			}
		}
	}
	if !a.closed {
		a.auditIdle()
	}
}

// audit checks that every post of the lane has completed, that none succeeded after
// a failure, and that no suppressed post without an event must have failed.
func (l *lane) audit() {
	deadline := time.Now().Add(l.account.w.cfg.Patience)
	failure := ^uint64(0) // the clock when the first post that failed had returned
	for _, p := range l.pages {
		for e := range p.unaudited {
			l.awaitEntry(p, e, deadline)
			if end := e.end.Load(); l.inLife(e) && e.state.Load() == failed {
				failure = min(failure, end)
			}
		}
	}
	for _, p := range l.pages {
		p.auditOrder(failure)
	}
}

// inLife reports whether an entry was posted in this life, before the reset of the
// endpoint at its end.
func (l *lane) inLife(e *entry) bool {
	end := e.end.Load()
	return end != 0 && e.begin > l.since && (l.resetAt == 0 || end < l.resetAt)
}

// auditOrder complains of posts that succeeded after an earlier one failed, and of
// suppressed posts without an event that must have failed for that reason.
func (p *page) auditOrder(failure uint64) {
	b := p.lane.account.books
	broken := false
	for e := range p.unaudited {
		after := p.lane.inLife(e) && (broken || e.begin > failure)
		quiet := e.flags&hw.Suppress != 0
		switch state := e.state.Load(); {
		case state == failed:
			broken = broken || p.lane.inLife(e)
		case state == succeeded && after:
			b.accuse(Resurgence, "%s: it succeeded after a failure", p.name(e))
		case state == accepted && quiet && after:
			b.accuse(Lost, "%s: it was suppressed and one before it failed, so it must have failed, too", p.name(e))
		case state == accepted && quiet:
			b.counts.add(suppressed, 1)
		}
	}
}

// succeededQuietly reports whether an entry succeeded, with an event or, if it was
// suppressed, without.
func succeededQuietly(e *entry) bool {
	s := e.state.Load()
	return s == succeeded || s == accepted && e.flags&hw.Suppress != 0
}

// awaitEntry waits until an entry has completed. It does not wait for receives that
// were posted while the endpoint was being reset: they may still be posted.
func (l *lane) awaitEntry(p *page, e *entry, deadline time.Time) {
	for {
		s := e.state.Load()
		if s == succeeded || s == failed || s == refused || s == accepted && e.quiet() {
			return
		}
		if l.dir == receives && l.resetAt != 0 && e.end.Load() >= l.resetAt && !l.account.closed {
			l.account.books.counts.add(carriedOver, 1)
			return
		}
		if e.place == atShot {
			p.poll()
		}
		if time.Now().After(deadline) || l.account.books.closingAbruptly.Load() {
			l.account.books.accuse(Lost, "%s: it was accepted, and did not complete (%v)", p.name(e), l.account.life.Load())
			return
		}
		time.Sleep(idlePause)
	}
}

// auditArrivals checks that the peer received every send that succeeded. A receive
// whose event nobody sees (unseen) may have taken one.
func (a *account) auditArrivals() {
	l, peers := &a.lanes[requests], &a.peer.Load().lanes[receives]
	missing := int64(0)
	var first string
	for _, p := range l.pages {
		for e := range p.unaudited {
			if e.op == hw.OpSend && e.length >= headerSize && succeededQuietly(e) && e.arrived.Load() == 0 {
				missing++
				first = p.name(e)
			}
		}
	}
	if missing > peers.unseen.Load() {
		a.books.accuse(Lost, "%s: it succeeded, and the peer has not received it (%d such, and %d receives unseen)", first, missing, peers.unseen.Load())
	}
}

// auditIdle checks that an endpoint with nothing outstanding reports itself idle, and has counted
// what the books have. It waits, since the endpoint's goroutine may still have work.
func (a *account) auditIdle() {
	carried := false
	for _, p := range a.lanes[receives].pages {
		carried = carried || p.outstanding() > 0
	}
	for deadline := time.Now().Add(a.w.cfg.Patience); ; time.Sleep(idlePause) {
		s, err := a.ep.Status()
		wrong := a.miscounted()
		if err == nil && s.State == ep.Unconnected && s.RequestIdle && (s.RecvIdle || carried) && wrong == "" {
			return
		}
		if time.Now().After(deadline) || a.books.closingAbruptly.Load() {
			a.books.accuse(Leak, "%v: all is settled after Reset, and its status is %v, requests idle %v, receives idle %v, error %v; its counts: %q",
				a, s.State, s.RequestIdle, s.RecvIdle, err, wrong)
			return
		}
	}
}
