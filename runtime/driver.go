package runtime

import (
	goruntime "runtime"
	"sync/atomic"
	"time"

	"godat/evd"
	"godat/hw"
	"godat/internal/yield"
)

// driver has the completion queues of a device emptied by the consumers of its
// dispatchers; see PollerConfig.ConsumerPolls. Whoever finds its dispatcher empty
// takes the token, polls once, and delivers what came, whosever it is:
//
//	device ─Poll→ whoever has the token ─Complete→ endpoints
//
// So completions have one deliverer at a time, and each sees what the one before
// it did. Nobody waits for the token: who has it is doing the work.
//
// That nothing depends on consumers who go on polling is the back-stop's part, a
// goroutine that does what a poller does: arm, poll once more, wait. It keeps away
// as long as consumers poll, and looks every lookPeriod whether they still do. It
// is tied to no thread: it wakes consumers itself, and from a thread of its own
// that costs them tens of microseconds.
type driver struct {
	// Immutable once started.
	dev    hw.Polled
	to     completer
	cpus   []int
	spin   int
	report func(hw.AsyncEvent)
	ready  chan error    // the outcome of the start
	done   chan struct{} // closed when the back-stop has ended

	// Shared.
	token    atomic.Uint32
	driven   atomic.Bool // a consumer polled, and none has left, since the back-stop looked
	asleep   atomic.Bool // the back-stop waits for the device, or is about to
	stopping atomic.Bool
	call     chan struct{} // ends the back-stop's nap, this one or the next

	// The token holder's.
	wcs [pollBatch]hw.WC

	// The back-stop's.
	naps     *time.Timer
	degraded bool
}

// What the token can be.
const (
	tokenFree = iota
	tokenHeld
	tokenGone // the device closes
)

// lookPeriod is how long the back-stop leaves the device to consumers that have
// polled. When they stop without a word it is in charge after two at most.
const lookPeriod = time.Millisecond

// newDriver makes a driver for a device. report takes errors of the device.
func newDriver(dev hw.Polled, cfg PollerConfig, report func(hw.AsyncEvent)) *driver {
	d := &driver{
		dev: dev, cpus: cfg.CPUs, spin: cfg.spins(), report: report,
		ready: make(chan error, 1), done: make(chan struct{}), call: make(chan struct{}, 1),
		naps: time.NewTimer(lookPeriod),
	}
	d.naps.Stop()
	return d
}

// start starts the back-stop, and returns when it runs where it was asked to. to
// takes the completions.
func (d *driver) start(to completer) error {
	d.to = to
	go d.run()
	return <-d.ready
}

// stop ends the back-stop, and then keeps everybody from the device.
func (d *driver) stop() {
	d.stopping.Store(true)
	d.dev.Wake()
	d.wake()
	<-d.done
	for !d.token.CompareAndSwap(tokenFree, tokenGone) {
		goruntime.Gosched() // a consumer delivers a batch
	}
}

// stir has the device looked at for a dispatcher. Dispatchers call it.
func (d *driver) stir(how evd.Look) {
	switch how {
	case evd.LookNow:
		if !d.driven.Load() {
			d.driven.Store(true)
		}
		d.help()
	case evd.LookAndLeave:
		d.help()
		d.leave()
	case evd.LookElsewhere:
		d.rouse()
	}
}

// help polls once, if nobody else is at it.
func (d *driver) help() {
	if !d.take() {
		return
	}
	n := d.poll()
	d.token.Store(tokenFree)
	if n > 0 {
		d.rouse() // there may be more to do that ends no wait: see hw.Polled
	}
}

// leave puts the back-stop in charge. If it is asleep by now the device wakes it,
// and then it sees that nobody drives; if not, it is called.
func (d *driver) leave() {
	if d.driven.Load() {
		d.driven.Store(false)
	}
	yield.Point()
	if !d.asleep.Load() {
		d.wake()
	}
}

// rouse ends the back-stop's wait for the device, if it is in one or goes into one
// without having polled again.
func (d *driver) rouse() {
	if d.asleep.Load() && d.asleep.CompareAndSwap(true, false) {
		d.dev.Wake()
	}
}

// wake ends the back-stop's nap.
func (d *driver) wake() {
	select {
	case d.call <- struct{}{}:
	default:
	}
}

// take takes the token if it is free.
func (d *driver) take() bool { return d.token.CompareAndSwap(tokenFree, tokenHeld) }

// poll polls once and delivers. Its caller has the token.
func (d *driver) poll() int {
	n := d.dev.Poll(d.wcs[:])
	yield.Point()
	if n > 0 {
		d.to.Complete(d.wcs[:n])
	}
	return n
}

// run is the back-stop.
func (d *driver) run() {
	defer close(d.done)
	if len(d.cpus) > 0 {
		goruntime.LockOSThread() // for good: the thread ends with the goroutine
	}
	err := setAffinity(d.cpus)
	d.ready <- err
	if err != nil {
		return
	}
	idle := 0
	for !d.stopping.Load() {
		switch {
		case d.driven.Swap(false):
			d.nap()
			idle = 0
		case d.look() > 0:
			goruntime.Gosched() // whom it woke comes first
			idle = 0
		case idle < d.spin:
			idle++
			goruntime.Gosched()
		default:
			d.sleep()
			idle = 0
		}
	}
}

// look is help for the back-stop.
func (d *driver) look() (n int) {
	if d.take() {
		n = d.poll()
		d.token.Store(tokenFree)
	}
	return n
}

// nap leaves the device alone for a period, or until somebody leaves it.
func (d *driver) nap() {
	d.naps.Reset(lookPeriod)
	select {
	case <-d.naps.C:
	case <-d.call:
		d.naps.Stop()
	}
}

// sleep arms the device, looks once more, and waits.
func (d *driver) sleep() {
	if d.degraded {
		d.nap()
		return
	}
	d.asleep.Store(true) // before the second look: see rouse
	defer d.asleep.Store(false)
	if !d.take() {
		goruntime.Gosched() // somebody looks
		return
	}
	err := d.dev.Arm()
	n := 0
	if err == nil {
		n = d.poll()
	}
	d.token.Store(tokenFree)
	if err == nil {
		if n > 0 || d.stopping.Load() || d.driven.Load() {
			return
		}
		yield.Point()
		err = d.dev.Wait()
	}
	if err != nil {
		// As in poller: from now on look from time to time.
		d.degraded = true
		d.report(hw.AsyncEvent{Kind: hw.AsyncDeviceFatal, Err: err})
	}
}
