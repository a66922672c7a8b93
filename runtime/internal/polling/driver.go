package polling

import (
	goruntime "runtime"
	"sync/atomic"
	"time"

	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/release"
	"godat/internal/yield"
)

// driver polls and delivers without threads of its own. Consumers of the device's dispatchers
// poll: one that finds its dispatcher empty takes the token, polls once, and delivers all that
// came, to its own dispatcher and to others.
//
// Only the token's holder delivers, so completions have one deliverer at a time, and
// each holder sees what the one before it did. No consumer waits for the token, because
// its holder is doing the work already.
//
// The back-stop is a goroutine that polls when consumers don't. It does what a poller does:
// arm, poll once more, wait. It is not locked to a thread, because it wakes consumers itself,
// and a wake-up by a locked thread takes tens of microseconds.
//
// The back-stop leaves the device to consumers that have found completions, again and again,
// before it did: each of its own wake-ups was in vain. It keeps away as long as they go on
// polling or are busy with the events that they got, and checks every drivenPeriod whether
// they do. So a consumer that now and then looks at its dispatcher delays no other event, and
// one that stops polling delays them by two periods, once.
type driver struct {
	// Immutable once started.
	dev    hw.Polled
	wait   func() error // the device's Wait, or Sleep if it has one
	to     Completer
	report func(hw.AsyncEvent)
	ready  chan struct{} // closed when the price of a sleep is known
	done   chan struct{} // closed when the back-stop has ended

	// Shared.
	token    atomic.Uint32
	driven   atomic.Pointer[delivery.Consumer] // since the back-stop last looked, this consumer has polled and none has gone to sleep
	slept    atomic.Bool                       // since the back-stop last looked, a consumer has gone to sleep
	asleep   atomic.Bool                       // the back-stop waits for the device, or is about to
	away     atomic.Bool                       // consumers have the device; the back-stop writes it
	stopping atomic.Bool
	napEnd   chan struct{} // ends the back-stop's nap, the current or the next one
	counts   counts

	// Owned by the token's holder.
	wcs [pollBatch]hw.WC

	// Owned by the back-stop.
	nap      *time.Timer
	pace     pace
	degraded bool
	consumed consumed
}

// The states of the token.
const (
	tokenFree = iota
	tokenHeld
	tokenGone // the driver has stopped: nobody polls any more
)

// drivenPeriod is how long the back-stop leaves the device to consumers that have
// polled or taken events. When they just stop, the back-stop takes over after two
// periods at most.
const drivenPeriod = time.Millisecond

// newDriver makes a driver for a device. report takes errors of the device.
func newDriver(dev hw.Polled, cfg Config, report func(hw.AsyncEvent)) *driver {
	d := &driver{
		dev: dev, pace: newPace(cfg.SpinRounds), report: report,
		ready: make(chan struct{}), done: make(chan struct{}), napEnd: make(chan struct{}, 1),
		nap: time.NewTimer(drivenPeriod),
	}
	d.nap.Stop()
	d.wait = dev.Wait
	if s, ok := dev.(hw.Sleeper); ok {
		d.wait = s.Sleep
	}
	return d
}

// start starts the back-stop, and returns when that has measured what a sleep costs. to takes
// the completions.
func (d *driver) start(to Completer) {
	d.to = to
	go d.run()
	<-d.ready
}

// stop ends the back-stop, and then takes the token for good, so that no consumer polls
// any more.
func (d *driver) stop() {
	d.stopping.Store(true)
	d.dev.Wake()
	d.endNap()
	<-d.done
	for !d.token.CompareAndSwap(tokenFree, tokenGone) {
		goruntime.Gosched() // a consumer delivers a batch
	}
}

// pollDevice polls for a consumer, or has the back-stop poll. Dispatchers call it.
func (d *driver) pollDevice(c *delivery.Consumer, hint delivery.PollHint) {
	switch hint {
	case delivery.PollNow:
		if d.driven.Load() == nil {
			d.driven.Store(c)
		}
		d.pollOnce()
	case delivery.PollBeforeSleep:
		d.pollOnce()
		d.handToBackStop()
	case delivery.PollElsewhere:
		d.endWait()
	case delivery.PollAgain: // the back-stop polls
	}
}

// pollOnce polls for a consumer, if nobody else polls.
func (d *driver) pollOnce() {
	if !d.tryToken() {
		return
	}
	release.Count(&d.counts.consumers, 1)
	n := d.poll()
	if n > 0 {
		release.Count(&d.counts.consumed, 1)
	}
	d.token.Store(tokenFree)
	if n > 0 {
		d.endWait() // work may be left that ends no wait: see hw.Polled
	}
}

// handToBackStop puts the back-stop in charge, for a consumer that goes to sleep. The
// device wakes a back-stop that is asleep, which then finds driven unset and slept set.
// A back-stop that naps is woken here.
func (d *driver) handToBackStop() {
	if d.driven.Load() != nil {
		d.driven.Store(nil)
	}
	d.slept.Store(true)
	yield.Point()
	if !d.asleep.Load() {
		d.endNap()
	}
}

// endWait ends the back-stop's wait for the device. It also ends a wait that the
// back-stop is about to begin, unless the back-stop polls before.
func (d *driver) endWait() {
	if d.asleep.Load() && d.asleep.CompareAndSwap(true, false) {
		d.counts.wakes.Add(1)
		d.dev.Wake()
	}
}

func (d *driver) endNap() {
	select {
	case d.napEnd <- struct{}{}:
	default:
	}
}

func (d *driver) tryToken() bool { return d.token.CompareAndSwap(tokenFree, tokenHeld) }

// tryPoll polls once and delivers, if the token is free; it returns the number of
// completions.
func (d *driver) tryPoll() (n int) {
	if d.tryToken() {
		n = d.poll()
		d.token.Store(tokenFree)
	}
	return n
}

// poll polls once and delivers. The caller holds the token.
func (d *driver) poll() int {
	n := d.dev.Poll(d.wcs[:])
	d.counts.polled(n)
	yield.Point()
	if n > 0 {
		d.to.Complete(d.wcs[:n])
	}
	return n
}

// run is the back-stop's body.
func (d *driver) run() {
	pollerLabel.Set()
	defer close(d.done)
	d.pace.measure(d.dev, d.wait, goruntime.Gosched, &d.counts)
	close(d.ready)
	for !d.stopping.Load() {
		d.turn()
	}
}

// turn is one round of the back-stop.
func (d *driver) turn() {
	if d.consumersHaveIt() {
		d.leave()
		return
	}
	n := d.tryPoll()
	d.takeBack()
	switch {
	case n > 0:
		d.consumed.inVain = 0
		d.pace.found(n, &d.counts)
		goruntime.Gosched() // lets the consumers that it woke run first
	case d.pace.again(&d.counts):
		goruntime.Gosched()
	default:
		d.sleep()
	}
}

// leave leaves the device to the consumers for a while.
func (d *driver) leave() {
	d.pace.sleeps(&d.counts)
	d.away.Store(true)
	d.takeNap()
}

// takeBack ends the time of the consumers.
func (d *driver) takeBack() {
	if d.away.Load() {
		d.away.Store(false)
		d.consumed.inVain = 0
		release.Count(&d.counts.handBacks, 1)
	}
}

// takeNap leaves the device alone for a period, or until a consumer goes to sleep.
func (d *driver) takeNap() {
	d.nap.Reset(drivenPeriod)
	select {
	case <-d.nap.C:
	case <-d.napEnd:
		d.nap.Stop()
	}
}

// sleep arms the device, polls once more, and waits for the device. It returns early if
// there may be something to do.
func (d *driver) sleep() {
	d.pace.sleeps(&d.counts)
	if d.degraded {
		d.takeNap()
		return
	}
	d.asleep.Store(true) // before the second poll: see endWait
	defer d.asleep.Store(false)
	if !d.tryToken() {
		goruntime.Gosched() // a consumer polls: let it run
		return
	}
	err := d.dev.Arm()
	n := 0
	if err == nil {
		release.Count(&d.counts.arms, 1)
		if n = d.poll(); n > 0 {
			d.pace.found(n, &d.counts)
		}
	}
	d.token.Store(tokenFree)
	if err == nil {
		if n > 0 || d.stopping.Load() {
			return
		}
		yield.Point()
		release.Count(&d.counts.waits, 1)
		err = d.wait()
	}
	if err != nil {
		// As in the pinned poller: from now on the back-stop polls at intervals.
		d.degraded = true
		d.report(hw.AsyncEvent{Kind: hw.AsyncDeviceFatal, Err: err})
	}
}
