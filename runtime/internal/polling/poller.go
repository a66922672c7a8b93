package polling

import (
	goruntime "runtime"
	"slices"
	"sync/atomic"
	"time"

	"godat/hw"
	"godat/internal/labels"
	"godat/internal/release"
	"godat/internal/yield"
)

// poller is the pinned poller, a goroutine that is locked to a thread. As long as the
// device works, the thread touches no channel, no mutex and not the scheduler: each of
// these costs a locked thread a hand-off to another one, 14 µs or more, and the
// goroutine that it made ready waits behind the hand-off for longer. The thread polls,
// copies completions to rings, and writes to the eventfd of a deliverer that is parked.
type poller struct {
	// Immutable after newPoller.
	dev    hw.Polled
	cpus   []int
	report func(hw.AsyncEvent)
	ready  chan error    // the outcome of start
	done   chan struct{} // closed when the thread has ended

	// Shared.
	bindings atomic.Pointer[[]*cqBinding] // by the tag of the completion queue; a new list at each change
	stopping atomic.Bool
	asleep   atomic.Bool // the thread waits for the device, or is about to

	// spinsFor is the deliverer of the last completion; nil from the time the thread
	// sleeps until it finds another completion. Only the thread writes it.
	spinsFor atomic.Pointer[deliverer]
	counts   counts

	// Owned by the thread.
	wcs      [pollBatch]hw.WC
	pace     pace
	degraded bool
}

// newPoller makes a poller for a device. report takes errors of the device.
func newPoller(dev hw.Polled, cfg Config, report func(hw.AsyncEvent)) *poller {
	p := &poller{
		dev: dev, cpus: cfg.CPUs, pace: newPace(cfg.SpinRounds), report: report,
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

// stop ends the thread. Completions that it has not polled stay in the device.
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

// wake makes the thread poll once more, for queues whose completions don't all wake it.
// A thread that is not asleep yet polls before it sleeps.
func (p *poller) wake() {
	if p.asleep.Load() && p.asleep.CompareAndSwap(true, false) {
		p.counts.wakes.Add(1)
		p.dev.Wake()
	}
}

var pollerLabel = labels.Of("the poller")

// run is the thread's body. It never unlocks the thread, so the system thread, with its
// affinity, ends with the goroutine.
func (p *poller) run() {
	pollerLabel.Set()
	defer close(p.done)
	defer p.spinsFor.Store(nil)
	goruntime.LockOSThread()
	err := setAffinity(p.cpus)
	if err == nil {
		p.pace.measure(p.dev, p.dev.Wait, func() {}, &p.counts)
	}
	p.ready <- err
	if err != nil {
		return
	}
	for !p.stopping.Load() {
		if !p.poll() && !p.pace.again(&p.counts) {
			p.sleep()
		}
	}
}

// poll polls once and reports whether a completion came.
func (p *poller) poll() bool {
	n := p.dev.Poll(p.wcs[:])
	p.counts.polled(n)
	yield.Point()
	if n == 0 {
		return false
	}
	p.pace.found(n, &p.counts)
	p.distribute(p.wcs[:n])
	return true
}

// distribute copies completions to the rings of their queues, and wakes parked
// deliverers. One batch wakes a deliverer at most once, since the first wake-up unparks
// it.
func (p *poller) distribute(wcs []hw.WC) {
	bindings := *p.bindings.Load()
	for len(wcs) > 0 {
		tag, n := wcs[0].CQ, 1
		for n < len(wcs) && wcs[n].CQ == tag {
			n++
		}
		// A queue without a binding was closed, after its last queue pair.
		if int(tag) < len(bindings) && bindings[tag] != nil {
			p.push(bindings[tag], wcs[:n])
		}
		wcs = wcs[n:]
	}
}

// push hands completions of one queue to the queue's deliverer.
func (p *poller) push(b *cqBinding, wcs []hw.WC) {
	if p.spinsFor.Load() != b.deliverer { // every deliverer reads it all the time, so write it only when it changes
		p.spinsFor.Store(b.deliverer)
	}
	b.push(wcs)
}

// sleep arms the device, polls once more, and waits. Without the second poll, a
// completion that came before the device was armed would wait for the next one.
func (p *poller) sleep() {
	p.spinsFor.Store(nil)
	p.pace.sleeps(&p.counts)
	if p.degraded {
		time.Sleep(degradedPeriod)
		return
	}
	p.asleep.Store(true) // before the second poll: see wake
	defer p.asleep.Store(false)
	err := p.dev.Arm()
	if err == nil {
		release.Count(&p.counts.arms, 1)
		if p.poll() || p.stopping.Load() {
			return
		}
		yield.Point()
		release.Count(&p.counts.waits, 1)
		err = p.dev.Wait()
	}
	if err != nil {
		// The device no longer wakes the thread, but still has completions to flush. So
		// from now on the thread polls at intervals.
		p.degraded = true
		p.report(hw.AsyncEvent{Kind: hw.AsyncDeviceFatal, Err: err})
	}
}
