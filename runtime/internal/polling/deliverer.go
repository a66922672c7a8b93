package polling

import (
	goruntime "runtime"
	"slices"
	"sync/atomic"

	"godat/hw"
	"godat/internal/labels"
	"godat/internal/yield"
)

// deliverer is the goroutine that delivers the completions of one dispatcher: it
// empties the rings of the dispatcher's completion queues. It runs on no thread of its
// own, so the goroutines that it wakes run soon.
//
// Parking loses no wake-up. The deliverer sets parked and then looks at the rings; the
// poller publishes to a ring and then looks at parked. All four accesses are
// sequentially consistent, so the deliverer sees the ring or the poller sees parked.
// The deliverer that unparks itself and the poller that wakes it both swap parked, and
// one of them wins. When the poller has won, the deliverer waits for the wake-up, so
// that none is left over for the next wait.
type deliverer struct {
	// Immutable.
	to     Completer
	report func(hw.AsyncEvent)
	poller *poller // pushes to the rings
	waker  *waker
	ended  func(*deliverer) // called last

	// Shared.
	bindings atomic.Pointer[[]*cqBinding] // a new list at each change
	parked   atomic.Uint32
	stopping atomic.Bool

	// Owned by the goroutine.
	buf [pollBatch]hw.WC
}

func newDeliverer(to Completer, report func(hw.AsyncEvent), p *poller, w *waker, ended func(*deliverer)) *deliverer {
	d := &deliverer{to: to, report: report, poller: p, waker: w, ended: ended}
	d.bindings.Store(new([]*cqBinding))
	return d
}

// add gives the deliverer one more ring to empty. Engine.mu is held.
func (d *deliverer) add(b *cqBinding) {
	bindings := append(slices.Clone(*d.bindings.Load()), b)
	d.bindings.Store(&bindings)
}

// remove takes a ring away and reports whether it was the last. Engine.mu is held.
func (d *deliverer) remove(b *cqBinding) (last bool) {
	bindings := slices.DeleteFunc(slices.Clone(*d.bindings.Load()), func(o *cqBinding) bool { return o == b })
	d.bindings.Store(&bindings)
	return len(bindings) == 0
}

// stop makes the goroutine end once it has emptied its rings. It does not wait.
func (d *deliverer) stop() {
	d.stopping.Store(true)
	yield.Point()
	d.wake()
}

// wake unparks the goroutine if it is parked. The poller's thread calls it, and stop.
func (d *deliverer) wake() {
	if d.parked.Load() != 0 && d.parked.CompareAndSwap(1, 0) {
		d.poller.counts.wakes.Add(1)
		d.waker.wake()
	}
}

// idleRounds take longer than a round trip, and short enough to cost little.
const idleRounds = 20

var delivererLabel = labels.Of("a deliverer")

// run is the goroutine's body.
func (d *deliverer) run() {
	delivererLabel.Set()
	defer d.ended(d)
	idle := 0
	for {
		switch {
		case d.drain():
			idle = 0
		case d.stopping.Load():
			return
		case d.staysAwake(idle):
			idle++
			goruntime.Gosched()
		default:
			d.park()
			idle = 0
		}
	}
}

// staysAwake reports whether the goroutine polls its rings again after idle rounds in
// which it found nothing. The deliverer of the last completion does so as long as the
// poller spins: a program that pays for a spinning thread does not want to pay for a
// wake-up of microseconds behind it.
func (d *deliverer) staysAwake(idle int) bool {
	return idle < idleRounds || d.poller.spinsFor.Load() == d
}

// drain delivers one batch from each ring and reports whether there was any.
func (d *deliverer) drain() (found bool) {
	for _, b := range *d.bindings.Load() {
		if n := b.ring.PopAll(d.buf[:]); n > 0 {
			found = true
			d.to.Complete(d.buf[:n])
		}
		if b.overrun.Load() && b.overrun.CompareAndSwap(true, false) {
			d.report(hw.AsyncEvent{Kind: hw.AsyncCQOverrun, CQ: b.cq})
		}
	}
	return found
}

// park sleeps until the poller has published something or stop was called.
func (d *deliverer) park() {
	if d.announcePark() {
		d.waker.wait()
		d.parked.Store(0)
	}
}

// announcePark sets parked, and reports whether the goroutine must wait. It need not if
// there is something to do and no wake-up for it is under way.
func (d *deliverer) announcePark() bool {
	yield.Point()
	d.parked.Store(1)
	yield.Point()
	return !d.pending() && !d.stopping.Load() || !d.parked.CompareAndSwap(1, 0)
}

func (d *deliverer) pending() bool {
	for _, b := range *d.bindings.Load() {
		if !b.ring.Empty() {
			return true
		}
	}
	return false
}
