package polling

import (
	goruntime "runtime"
	"slices"
	"sync/atomic"
	"time"

	"godat/hw"
)

// poller is the pinned poller, a goroutine that is locked to a thread. The thread
// never touches a channel, a mutex or the scheduler as long as the device works:
// each of these costs a locked thread a hand-off to another one, 14 µs or more, and
// the goroutine that it made ready waits behind it for longer. The thread polls,
// copies completions to rings, and writes to the eventfd of a deliverer that is
// parked.
type poller struct {
	// Immutable after newPoller.
	dev    hw.Polled
	cpus   []int
	spin   int
	report func(hw.AsyncEvent)
	ready  chan error    // the outcome of the start
	done   chan struct{} // closed when the thread has ended

	// Shared.
	bindings atomic.Pointer[[]*cqBinding] // by the tag of the completion queue; a new list at each change
	stopping atomic.Bool
	asleep   atomic.Bool // the thread waits for the device, or is about to

	// spinsFor is the deliverer of the last completion, and nil from when the thread
	// sleeps until it finds another one. Only the thread writes it.
	spinsFor atomic.Pointer[deliverer]

	// Owned by the thread.
	wcs      [pollBatch]hw.WC
	degraded bool
}

// newPoller makes a poller for a device. report takes errors of the device.
func newPoller(dev hw.Polled, cfg Config, report func(hw.AsyncEvent)) *poller {
	p := &poller{
		dev: dev, cpus: cfg.CPUs, spin: cfg.spins(), report: report,
		ready: make(chan error, 1), done: make(chan struct{}),
	}
	p.bindings.Store(new([]*cqBinding))
	return p
}

// start starts the thread, and returns when the thread runs on its processors.
func (p *poller) start() error {
	go p.run()
	if err := <-p.ready; err != nil {
		<-p.done
		return err
	}
	return nil
}

// stop ends the thread. Completions not polled by then stay in the device.
func (p *poller) stop() {
	p.stopping.Store(true)
	p.dev.Wake()
	<-p.done
}

// bind directs completions with a tag to a binding; nil drops them. Engine.mu is held.
func (p *poller) bind(tag uint32, b *cqBinding) {
	bindings := slices.Clone(*p.bindings.Load())
	for int(tag) >= len(bindings) {
		bindings = append(bindings, nil)
	}
	bindings[tag] = b
	p.bindings.Store(&bindings)
}

// wake has the thread poll once more, since some queues don't wake it for every
// completion. A thread that is not asleep by now polls before it is.
func (p *poller) wake() {
	if p.asleep.Load() && p.asleep.CompareAndSwap(true, false) {
		p.dev.Wake()
	}
}

// run is the thread. It is never unlocked: the system thread ends with the
// goroutine, and its affinity with it.
func (p *poller) run() {
	defer close(p.done)
	defer p.spinsFor.Store(nil)
	goruntime.LockOSThread()
	err := setAffinity(p.cpus)
	p.ready <- err
	if err != nil {
		return
	}
	idle := 0
	for !p.stopping.Load() {
		switch {
		case p.poll():
			idle = 0
		case idle < p.spin:
			idle++
		default:
			p.sleep()
			idle = 0
		}
	}
}

// poll polls once and reports whether something came.
func (p *poller) poll() bool {
	n := p.dev.Poll(p.wcs[:])
	if n == 0 {
		return false
	}
	p.distribute(p.wcs[:n])
	return true
}

// distribute copies completions to the rings of their queues, and wakes the
// deliverers that are parked. One batch wakes a deliverer once at most, since its
// first wake-up unparks it.
func (p *poller) distribute(wcs []hw.WC) {
	bindings := *p.bindings.Load()
	for len(wcs) > 0 {
		tag, n := wcs[0].CQ, 1
		for n < len(wcs) && wcs[n].CQ == tag {
			n++
		}
		// A queue without a binding has been closed, after its last queue pair.
		if int(tag) < len(bindings) && bindings[tag] != nil {
			p.push(bindings[tag], wcs[:n])
		}
		wcs = wcs[n:]
	}
}

// push hands completions of one queue to its deliverer.
func (p *poller) push(b *cqBinding, wcs []hw.WC) {
	if p.spinsFor.Load() != b.deliverer { // deliverers read it all the time: write it seldom
		p.spinsFor.Store(b.deliverer)
	}
	b.push(wcs)
}

// sleep arms the device, polls once more, and waits. Without the second poll, a
// completion that came before the device was armed would wait for the next one.
func (p *poller) sleep() {
	p.spinsFor.Store(nil)
	if p.degraded {
		time.Sleep(degradedPeriod)
		return
	}
	p.asleep.Store(true) // before the second poll: see wake
	defer p.asleep.Store(false)
	err := p.dev.Arm()
	if err == nil {
		if p.poll() || p.stopping.Load() {
			return
		}
		err = p.dev.Wait()
	}
	if err != nil {
		// The device no longer wakes the thread, but still has completions to flush. So
		// from now on the thread polls from time to time.
		p.degraded = true
		p.report(hw.AsyncEvent{Kind: hw.AsyncDeviceFatal, Err: err})
	}
}
