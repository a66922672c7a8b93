package posts

import (
	"fmt"
	"runtime"
	"time"
)

// link is a pair of endpoints that connect to each other again and again. Its
// goroutine makes, connects, resets and closes them; posters only post.
type link struct {
	w        *world
	number   int
	adapters [2]int // of each side
	sides    [2]*account
}

// run lives one life after the other until the world needs no more.
func (l *link) run() {
	defer l.w.links.Done()
	for n := 0; l.w.going(); n++ {
		if most := l.w.cfg.Pause; most > 0 {
			time.Sleep(time.Duration(l.w.dice(forLink, uint64(l.number), uint64(n)).Int64N(int64(most))))
		}
		if !l.live(n) {
			break
		}
	}
	if l.w.broken() {
		return
	}
	for s, a := range l.sides {
		if a != nil {
			l.close(s)
		}
	}
	l.settle()
	l.audit()
	for s := range l.sides {
		l.release(s)
	}
}

// live lives one life. It returns false when the link can't go on.
func (l *link) live(n int) bool {
	rng := l.w.dice(forLife, uint64(l.number), uint64(n))
	p := l.draw(rng)
	for s := range l.sides {
		if l.sides[s] != nil {
			continue
		}
		if l.sides[s] = l.openAccount(s, rng); l.sides[s] == nil {
			return false
		}
	}
	p.fit(l.sides)
	lf := newLife(l, n, p)
	l.w.books.counts.add(lives, 1)
	l.w.books.counts.add(p.attempt, 1)
	l.w.Step(l.String(), "life %d begins: %v, %v", n, p.attempt, p.ending)
	lf.begin()
	if l.connect(lf) {
		l.finish(lf)
	}
	l.conclude(lf)
	return !l.w.broken()
}

// finish waits for the planned time and ends the connection as planned, unless it
// ends before.
func (l *link) finish(lf *life) {
	if lf.plan.churn {
		for _, a := range lf.sides {
			a.lanes[requests].dispatcher.churn()
			a.lanes[receives].dispatcher.churn()
		}
	}
	due := lf.due
	if lf.plan.ending.quiet() {
		due = lf.rest
	}
	for posts := lf.posts.Load(); ; {
		select {
		case <-due:
		case <-lf.rest:
		case <-lf.sides[0].book.outcomes:
			lf.orphan()
			return
		case <-lf.sides[1].book.outcomes:
			lf.orphan()
			return
		case <-l.w.over:
			return
		case <-time.After(l.w.cfg.Patience):
			if n := lf.posts.Load(); n != posts {
				posts = n
				continue // the posters are slow, but not stuck
			}
			l.w.complain(Stuck, "%v: its posters neither post nor rest; %v", lf, l.state())
		}
		break
	}
	l.w.books.counts.add(lf.plan.ending, 1)
	l.w.Step(l.String(), "life %d ends behind %d posts: %v", lf.number, lf.posts.Load(), lf.plan.ending)
	l.end(lf)
}

// conclude waits until the connection is over on both sides, resets or closes the
// endpoints, and audits their accounts.
func (l *link) conclude(lf *life) {
	for s, a := range lf.sides {
		if ph := a.phaseNow(); !a.closed && (ph == up || ph == trying) {
			l.awaitEnd(lf, s)
		}
	}
	lf.ending.Store(true)
	if l.w.books.closingAbruptly.Load() {
		lf.halt()
		return
	}
	if !lf.plan.linger {
		lf.halt()
	}
	for s, a := range lf.sides {
		switch {
		case a.closed:
		case lf.plan.closes[s] || !a.room():
			l.close(s)
		default:
			l.reset(s)
		}
	}
	if lf.plan.linger {
		for range 10 {
			runtime.Gosched()
		}
		lf.halt()
	}
	if l.w.books.closingAbruptly.Load() {
		return
	}
	l.settle()
	l.audit()
	for s := range lf.sides {
		l.release(s)
	}
}

// awaitEnd waits until a side has heard how its connection, or its attempt, ended.
func (l *link) awaitEnd(lf *life, side int) {
	a := lf.sides[side]
	timeout := time.After(l.w.cfg.Patience)
	for ph := a.phaseNow(); ph == up || ph == trying; ph = a.phaseNow() {
		select {
		case <-a.book.outcomes:
		case <-l.w.over:
			return
		case <-timeout:
			l.w.complain(Connection, "%v: no end of the connection has come to %v, which is %v; %v", lf, a, ph, l.state())
			return
		}
	}
}

// reset resets a side's endpoint. An endpoint that did not try to connect keeps its
// receives posted, so all of them count as posted after the reset.
func (l *link) reset(side int) {
	a := l.sides[side]
	for d := range a.lanes {
		a.lanes[d].resetAt = a.lanes[d].clock.Add(1)
		if a.phaseNow() == idle {
			a.lanes[d].resetAt = 1
		}
	}
	l.w.must(a.ep.Reset(), "%v: resetting it", a)
	a.setPhase(idle)
}

// close closes a side's endpoint.
func (l *link) close(side int) {
	a := l.sides[side]
	a.closing.Store(true)
	l.w.must(a.ep.Close(), "%v: closing it", a)
	a.closed = true
}

// settle waits until every event that was delivered to the two sides is in the
// books.
func (l *link) settle() {
	done := make(map[*consumedDispatcher]bool)
	for _, a := range l.sides {
		if a == nil {
			continue
		}
		for _, h := range [...]*consumedDispatcher{a.conn, a.lanes[requests].dispatcher, a.lanes[receives].dispatcher} {
			if !done[h] {
				done[h] = true
				h.sync()
			}
		}
	}
}

// release frees the account of a side whose endpoint is closed.
func (l *link) release(side int) {
	if a := l.sides[side]; a != nil && a.closed {
		if !l.w.broken() {
			a.free()
		}
		l.sides[side] = nil
	}
}

func (l *link) String() string { return fmt.Sprintf("link %d", l.number) }

// state describes the state of both endpoints, for complaints.
func (l *link) state() (text string) {
	for s, a := range l.sides {
		if a == nil {
			continue
		}
		status, err := a.ep.Status()
		text += fmt.Sprintf("side %d: %v, %v, requests idle %v, receives idle %v, error %v;", s, a, status.State, status.RequestIdle, status.RecvIdle, err)
		for d := range a.lanes {
			for _, p := range a.lanes[d].pages {
				text += fmt.Sprintf(" %v page %d: %d outstanding of %d;", direction(d), p.number, p.begun.Load()-p.done.Load(), p.begun.Load())
			}
		}
	}
	return text
}
