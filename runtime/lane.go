package runtime

import (
	"sync/atomic"

	"godat/hw"
	"godat/internal/ring"
)

// lane carries the completions of one completion queue from the poller's thread
// to the feeder of the dispatcher that the queue belongs to.
type lane struct {
	// Immutable after it was published.
	tag    uint32
	depth  int
	feeder *feeder
	silent bool // the queue wakes the poller for solicited receives only
	ring   *ring.SPSC[hw.WC]

	// overrun is set when the ring was full: the device completed more than was
	// posted, or somebody attached more than the queue holds.
	overrun atomic.Bool

	// Guarded by cqPool.mu.
	cq   hw.CQ
	used int // entries attached
}

// newLane makes the lane of a queue of depth entries. A completion leaves the
// ring before its operation counts as done and another may be posted in its
// place, so no more are in the queue and the ring together than the queue holds:
// a ring of that size is never full.
func newLane(tag uint32, depth int, f *feeder, silent bool) *lane {
	return &lane{tag: tag, depth: depth, feeder: f, silent: silent, ring: ring.NewSPSC[hw.WC](depth)}
}

// push belongs to the poller's thread.
func (l *lane) push(wcs []hw.WC) {
	if l.ring.PushAll(wcs) < len(wcs) {
		l.overrun.Store(true)
	}
	l.feeder.wake()
}
