package runtime

import (
	"sync/atomic"

	"godat/evd"
	"godat/hw"
	"godat/internal/ring"
)

// lane is a completion queue in use. With a pinned poller it carries the
// completions from the poller's thread to the feeder of the dispatcher that the
// queue belongs to; where consumers poll it has no ring.
type lane struct {
	// Immutable after it was published.
	owner  *evd.Dispatcher // nil if it belongs to none
	depth  int
	silent bool // the queue wakes the poller for solicited receives only
	tag    uint32
	feeder *feeder
	ring   *ring.SPSC[hw.WC]

	// overrun is set when the ring was full: the device completed more than was
	// posted, or somebody attached more than the queue holds.
	overrun atomic.Bool

	// Guarded by cqPool.mu.
	cq   hw.CQ
	used int // entries attached
}

// carry gives the lane a ring and who empties it. A completion leaves the ring
// before its operation counts as done and another may be posted in its place, so no
// more are in the queue and the ring together than the queue holds: a ring of that
// size is never full.
func (l *lane) carry(f *feeder) { l.feeder, l.ring = f, ring.NewSPSC[hw.WC](l.depth) }

// push belongs to the poller's thread.
func (l *lane) push(wcs []hw.WC) {
	if l.ring.PushAll(wcs) < len(wcs) {
		l.overrun.Store(true)
	}
	l.feeder.wake()
}
