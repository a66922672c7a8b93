package ledger

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	dat "godat/runtime"
)

// Report is what a [Run] found and did.
type Report struct {
	Seed       uint64
	Took       time.Duration
	Complaints []Complaint

	Requests, Receives int64 // posts that were accepted
	Refused            int64 // posts that were refused
	Quiet              int64 // suppressed requests that succeeded
	Lives              int64 // lives, one per attempt to connect
	Endpoints          int   // endpoints made
	Orphans            int64 // connections that the provider ended before their planned end
	Carried            int64 // receives that stayed posted through a reset

	// Events counts events by completion status, by operation, and by how a consumer
	// got them; Lived counts lives by how they began and how they ended.
	Events, Lived map[string]int64
}

// Posts is how many posts were accepted.
func (r *Report) Posts() int64 { return r.Requests + r.Receives }

// Run runs the program that cfg describes, and returns when everything is closed. It
// compares the goroutines, descriptors and mappings of the process before and after,
// so nothing else may start or end any of them meanwhile.
func Run(cfg Config) *Report {
	cfg = cfg.withDefaults()
	w := &world{cfg: cfg}
	began := time.Now()
	warmUp()
	before := heldResources()
	if w.open() {
		w.run()
	}
	w.close()
	if !w.books.any.Load() {
		before.compare(w)
	}
	r := w.report()
	r.Took = time.Since(began)
	return r
}

func (w *world) report() *Report {
	c := &w.books.counts
	r := &Report{
		Seed: w.cfg.Seed, Complaints: w.books.all(),
		Requests: c.posted[requests].Load(), Receives: c.posted[receives].Load(), Refused: c.refused.Load(),
		Quiet: c.quiet.Load(), Lives: c.lives.Load(), Endpoints: len(w.books.accounts), Orphans: c.orphans.Load(),
		Carried: c.carried.Load(),
		Events:  make(map[string]int64), Lived: make(map[string]int64),
	}
	enter[dat.Status](r.Events, c.statuses[:])
	enter[style](r.Events, c.events[:])
	enter[dat.Op](r.Events, c.ops[:])
	enter[attempt](r.Lived, c.attempts[:])
	enter[ending](r.Lived, c.endings[:])
	return r
}

// enter enters counts by the names of what they count.
func enter[K interface {
	~uint8
	fmt.Stringer
}](by map[string]int64, counts []atomic.Int64) {
	for i := range counts {
		by[K(i).String()] = counts[i].Load()
	}
}

// String returns the report in a few lines.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d posts (%d requests, %d receives; %d refused) on %d endpoints in %d lives, %v, %.0f posts/s\n",
		r.Seed, r.Posts(), r.Requests, r.Receives, r.Refused, r.Endpoints, r.Lives, r.Took.Round(time.Millisecond), float64(r.Posts())/r.Took.Seconds())
	fmt.Fprintf(&b, "%d suppressed successes, %d orphans, %d receives carried over\n", r.Quiet, r.Orphans, r.Carried)
	fmt.Fprintf(&b, "events %v\nlives %v", r.Events, r.Lived)
	for _, c := range r.Complaints {
		fmt.Fprintf(&b, "\n%v", c)
	}
	return b.String()
}
