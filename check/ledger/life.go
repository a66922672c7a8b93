package ledger

import (
	"fmt"
	"sync"
	"sync/atomic"

	dat "godat/runtime"
)

// life is one attempt to connect two accounts, and what follows from it.
type life struct {
	// Immutable once posters run.
	link   *link
	number int
	plan   plan
	sides  [2]*account
	may    statusSet // what may come of the end that is planned, beside flushes
	breaks bool      // and BROKEN may
	stop   chan struct{}

	// ending is set before anything is done that ends the connection.
	ending atomic.Bool
	// halted is set when nobody is to post any more.
	halted atomic.Bool
	paused [2]atomic.Bool // a side posts no receives
	up     [2]chan struct{}

	// due is closed when so many posts were made as the plan has before the end;
	// rest, when no poster of requests has any more to do.
	due, rest chan struct{}
	posts     atomic.Int64
	busy      atomic.Int64
	posters   sync.WaitGroup
	receivers [2][]*receiver
}

func newLife(l *link, number int, p plan) *life {
	lf := &life{
		link: l, number: number, plan: p,
		stop: make(chan struct{}), due: make(chan struct{}), rest: make(chan struct{}),
	}
	for s := range lf.sides {
		lf.up[s] = make(chan struct{})
		a := l.sides[s]
		lf.sides[s] = a
		if a == nil {
			continue
		}
		a.peer = l.sides[1-s]
		for d := range a.lanes {
			a.lanes[d].bound.Store(0)
			a.lanes[d].since, a.lanes[d].resetAt = a.lanes[d].clock.Add(1), 0
		}
		for _, page := range a.lanes[receives].pages {
			page.arrivals = order{} // of another peer, it may be
		}
		a.life.Store(lf)
	}
	lf.may, lf.breaks = p.ending.allows()
	lf.ending.Store(p.attempt != joined)
	return lf
}

// posted counts posts of requests towards the planned end.
func (lf *life) posted(n int) {
	after := lf.posts.Add(int64(n))
	if at := int64(lf.plan.endAfter); after >= at && after-int64(n) < at {
		close(lf.due)
	}
}

// begin starts the posters of both sides; the receivers of a side begin when it
// is about to connect.
func (lf *life) begin() {
	var ps []*poster
	for s, a := range lf.sides {
		if s > 0 && a.w.cfg.Simple {
			break
		}
		for i := range a.lanes[requests].posters {
			ps = append(ps, newPoster(lf, s, i))
		}
	}
	lf.busy.Store(int64(len(ps)))
	lf.posters.Add(len(ps))
	for _, p := range ps {
		go p.run()
	}
}

// resting says that a poster has no more to do.
func (lf *life) resting() {
	if lf.busy.Add(-1) == 0 {
		close(lf.rest)
	}
}

// receive starts the receivers of a side.
func (lf *life) receive(side int) {
	a := lf.sides[side]
	for i, page := range a.lanes[receives].pages {
		r := newReceiver(lf, side, i, page)
		lf.receivers[side] = append(lf.receivers[side], r)
		r.prime()
		if r.upcall {
			page.pump.Store(r)
			r.replenish()
			continue
		}
		lf.posters.Add(1)
		go r.run()
	}
}

// halt ends all posters and waits for them.
func (lf *life) halt() {
	if !lf.halted.Swap(true) {
		close(lf.stop)
	}
	for side := range lf.receivers {
		for _, r := range lf.receivers[side] {
			if r.upcall {
				r.retire()
			}
		}
	}
	done := make(chan struct{})
	go lf.wait(done)
	lf.link.w.outlast(done, "%v: its posters to stop", lf)
}

// end says that from now on things are done that end the connection. A network that
// cuts connections may have been first; then posts from before this moment need not
// be from before the end, and nothing bounds those that are.
func (lf *life) end() {
	lf.ending.Store(true)
	for _, a := range lf.sides {
		for d := range a.lanes {
			now := a.lanes[d].clock.Add(1)
			if !a.w.cfg.Unreliable || a.ep.State() == dat.StateConnected {
				a.lanes[d].bound.CompareAndSwap(0, now)
			}
		}
	}
}

// wait waits for the posters.
func (lf *life) wait(done chan<- struct{}) {
	lf.posters.Wait()
	close(done)
}

// promised reports whether a request was posted before its own side, and no other,
// asked for a graceful end: it runs to completion.
func (lf *life) promised(p *page, e *entry) bool {
	a, end := p.lane.account, e.end.Load()
	return lf.plan.ending == graceful && lf.sides[lf.plan.by] == a && p.lane.dir == requests &&
		!a.w.cfg.Unreliable && !a.fragile() && end != 0 && end < p.lane.bound.Load()
}

func (lf *life) String() string {
	return fmt.Sprintf("link %d, life %d (%v, %v, between %v and %v)", lf.link.number, lf.number, lf.plan.attempt, lf.plan.ending, lf.sides[0], lf.sides[1])
}

// orphan notes an end that was not planned. Whether it had a cause is for the
// books of the connection to say.
func (lf *life) orphan() {
	lf.ending.Store(true)
	lf.link.w.books.counts.orphans.Add(1)
}
