package polling

import (
	"sync/atomic"

	"godat/evd"
	"godat/hw"
	"godat/internal/ring"
	"godat/internal/yield"
)

// cqBinding binds a completion queue to the dispatcher that the queue belongs to. With
// a pinned poller it has the ring that carries completions from the poller's thread to
// the dispatcher's deliverer. When consumers poll it has no ring.
type cqBinding struct {
	// Immutable after the binding was published.
	dispatcher    *evd.Dispatcher // nil if the queue belongs to none
	depth         int
	solicitedOnly bool // the queue wakes the poller for solicited receives only
	tag           uint32
	deliverer     *deliverer
	ring          *ring.SPSC[hw.WC]

	// overrun is set when the ring was full: the device completed more than was
	// posted, or more entries are attached than the queue holds.
	overrun atomic.Bool

	// open writes it, before any queue pair uses the queue: so the deliverer, which reads it for
	// an overrun, sees it behind the completion that did not fit.
	cq   hw.CQ
	used int // entries attached; guarded by Engine.mu
}

// carryTo gives the binding a ring, which the deliverer empties. A completion leaves
// the ring before its operation counts as completed and another may be posted in its
// place. So the queue and the ring together never hold more than the queue's depth, and
// a ring of that size is never full.
func (b *cqBinding) carryTo(d *deliverer) { b.deliverer, b.ring = d, ring.NewSPSC[hw.WC](b.depth) }

// push puts completions into the ring. Only the poller's thread calls it.
func (b *cqBinding) push(wcs []hw.WC) {
	if b.ring.PushAll(wcs) < len(wcs) {
		b.overrun.Store(true)
	}
	yield.Point()
	b.deliverer.wake()
}
