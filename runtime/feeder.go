package runtime

import (
	"cmp"
	goruntime "runtime"
	"slices"
	"sync/atomic"

	"godat/hw"
	"godat/internal/yield"
)

// completer takes polled completions: an *ep.Adapter.
type completer interface {
	Complete(wcs []hw.WC)
}

// feeder is the goroutine that delivers the completions of one dispatcher: it
// empties the rings of the dispatcher's completion queues. It runs on no thread
// of its own, so what it wakes runs soon.
//
// Parking loses no wake-up. The feeder says that it parks and then looks at the
// rings; the poller publishes to a ring and then looks whether the feeder parks.
// All four are sequentially consistent, so one of the two sees the other. Of the
// feeder that unparks itself and the poller that wakes it, one wins the swap of
// parked; a wake that was won is always waited for, so none is left over.
type feeder struct {
	// Immutable.
	to     completer
	report func(hw.AsyncEvent)
	rounds int     // see PollerConfig.FeederRounds
	poller *poller // the one that feeds it
	waker  *waker
	ended  func(*feeder) // called last

	// Shared.
	lanes    atomic.Pointer[[]*lane] // a new list at each change
	parked   atomic.Uint32
	stopping atomic.Bool

	// The goroutine's.
	buf [pollBatch]hw.WC
}

func newFeeder(to completer, rounds int, report func(hw.AsyncEvent), p *poller, w *waker, ended func(*feeder)) *feeder {
	f := &feeder{to: to, rounds: cmp.Or(rounds, defaultRounds), report: report, poller: p, waker: w, ended: ended}
	f.lanes.Store(new([]*lane))
	return f
}

// add gives the feeder one more ring to empty. Its caller excludes others.
func (f *feeder) add(l *lane) {
	lanes := append(slices.Clone(*f.lanes.Load()), l)
	f.lanes.Store(&lanes)
}

// remove takes a ring away. Its caller excludes others.
func (f *feeder) remove(l *lane) {
	lanes := slices.DeleteFunc(slices.Clone(*f.lanes.Load()), func(o *lane) bool { return o == l })
	f.lanes.Store(&lanes)
}

// stop ends the goroutine when it has emptied its rings. It does not wait.
func (f *feeder) stop() {
	f.stopping.Store(true)
	f.wake()
}

// wake unparks the goroutine if it is parked. The poller's thread calls it.
func (f *feeder) wake() {
	yield.Point()
	if f.parked.Load() != 0 && f.parked.CompareAndSwap(1, 0) {
		f.waker.wake()
	}
}

// run is the goroutine.
func (f *feeder) run() {
	defer f.ended(f)
	idle := 0
	for {
		switch {
		case f.drain():
			idle = 0
		case f.stopping.Load():
			return
		case f.stays(idle):
			idle++
			goruntime.Gosched()
		default:
			f.park()
			idle = 0
		}
	}
}

// stays reports whether the goroutine goes on looking after idle rounds in which
// it found nothing. The one that was fed last does as long as the poller spins:
// who pays for a spinning thread wants no wake-up of microseconds behind it.
func (f *feeder) stays(idle int) bool {
	return f.rounds < 0 || idle < f.rounds || f.poller.spinsFor.Load() == f
}

// drain takes a batch from each ring and reports whether there was any.
func (f *feeder) drain() (found bool) {
	for _, l := range *f.lanes.Load() {
		if n := l.ring.PopAll(f.buf[:]); n > 0 {
			found = true
			f.to.Complete(f.buf[:n])
		}
		if l.overrun.Load() && l.overrun.CompareAndSwap(true, false) {
			f.report(hw.AsyncEvent{Kind: hw.AsyncCQOverrun, CQ: l.cq})
		}
	}
	return found
}

// park sleeps until the poller has published something.
func (f *feeder) park() {
	f.parked.Store(1)
	yield.Point()
	if (f.pending() || f.stopping.Load()) && f.parked.CompareAndSwap(1, 0) {
		return
	}
	f.waker.wait()
	f.parked.Store(0)
}

// pending reports whether a ring has something.
func (f *feeder) pending() bool {
	for _, l := range *f.lanes.Load() {
		if !l.ring.Empty() {
			return true
		}
	}
	return false
}
