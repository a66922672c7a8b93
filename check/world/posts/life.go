package posts

import (
	"fmt"
	"sync"
	"sync/atomic"

	"godat/ep"
)

// life is one attempt to connect two accounts, and the connection that follows.
type life struct {
	// Immutable after newLife.
	link   *link
	number int
	plan   plan
	sides  [2]*account
	may    statusSet // the statuses that the planned end may cause, beside FLUSHED
	breaks bool      // the planned end may cause BROKEN
	stop   chan struct{}

	// ending is set before the link does anything that ends the connection.
	ending atomic.Bool
	// halted is set when all posters and receivers must stop.
	halted atomic.Bool
	paused [2]atomic.Bool // the receivers of that side must post no more
	up     [2]chan struct{}

	// due is closed when the posters have made the plan's endAfter posts; rest,
	// when every poster of requests has made its posts or given up.
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
		a.peer.Store(l.sides[1-s])
		for d := range a.lanes {
			a.lanes[d].bound.Store(0)
			a.lanes[d].since, a.lanes[d].resetAt = a.lanes[d].clock.Add(1), 0
		}
		for _, page := range a.lanes[receives].pages {
			page.arrivals = order{} // the peer may be another one
		}
		a.life.Store(lf)
	}
	lf.may, lf.breaks = endingTable[p.ending].may, endingTable[p.ending].breaks
	lf.ending.Store(p.attempt != joined)
	return lf
}

// posted counts requests that were posted, and closes due when there are enough.
func (lf *life) posted(n int) {
	after := lf.posts.Add(int64(n))
	if at := int64(lf.plan.endAfter); after >= at && after-int64(n) < at {
		close(lf.due)
	}
}

// begin starts the posters of both sides; connect and accept start a side's
// receivers before they connect it.
func (lf *life) begin() {
	var ps []*poster
	for s, a := range lf.sides {
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

// resting records that a poster has made its posts or given up.
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

// halt ends all posters and receivers and waits for them.
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
	lf.link.w.outlast(spawn(lf.posters.Wait), "%v: its posters to stop", lf)
}

// end records that the link is about to end the connection, and sets the bound of
// each lane: posts that returned before it must complete before the event of the end.
// An unreliable network may have ended the connection already. Then posts from before
// now may still come after the end, so such a lane gets no bound.
func (lf *life) end() {
	lf.ending.Store(true)
	for _, a := range lf.sides {
		for d := range a.lanes {
			now := a.lanes[d].clock.Add(1)
			if !a.w.cfg.Unreliable || a.ep.State() == ep.Connected {
				a.lanes[d].bound.CompareAndSwap(0, now)
			}
		}
	}
}

// promised reports whether a request must run to completion: its own side alone
// ended the connection, gracefully, and the post had returned before that.
func (lf *life) promised(p *page, e *entry) bool {
	a, end := p.lane.account, e.end.Load()
	return lf.plan.ending == graceful && lf.sides[lf.plan.by] == a && p.lane.dir == requests &&
		!a.w.cfg.Unreliable && !a.fragile() && end != 0 && end < p.lane.bound.Load()
}

func (lf *life) String() string {
	return fmt.Sprintf("link %d, life %d (%v, %v, between %v and %v)", lf.link.number, lf.number, lf.plan.attempt, lf.plan.ending, lf.sides[0], lf.sides[1])
}

// orphan records that a connection ended before its planned end. The book of the
// connection checks whether that had a cause.
func (lf *life) orphan() {
	lf.ending.Store(true)
	lf.link.w.books.counts.add(orphaned, 1)
}
