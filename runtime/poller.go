package runtime

import (
	goruntime "runtime"
	"slices"
	"sync/atomic"
	"time"

	"godat/hw"
)

// PollerConfig configures who empties the completion queues of a device that must
// be polled: the pinned poller, which is a thread of its own, or with
// ConsumerPolls the program. Other devices have none.
type PollerConfig struct {
	// ConsumerPolls has a Dequeue that finds its dispatcher empty poll the device
	// itself, once, and deliver what came: to its own dispatcher and to all others,
	// whatever their mode. Nothing is handed from thread to thread. It is for the
	// lowest latency, in programs that call Dequeue all the time anyway and spend a
	// processor on it. Any number of goroutines may: one polls at a time, and the
	// others find what there is.
	//
	// Nobody has to poll. When no Dequeue has for a millisecond or two, the adapter
	// polls and waits for the device itself, and leaves it again to consumers that
	// come back. Who is in Wait, iterates, or dequeues from a dispatcher with a CNO
	// puts the adapter in charge at once, after one poll of its own. So events that are
	// not dequeued (channels, callbacks, CNOs) may come those milliseconds
	// late once, when a goroutine stops dequeueing elsewhere.
	//
	// There is no pinned thread then, and FeederRounds has no effect. With CPUs,
	// what stands in for idle consumers has a thread on these, which makes
	// it slower to wake others.
	ConsumerPolls bool

	// CPUs are the processors that the thread may run on; none means any. It is
	// supported on Linux; elsewhere Open fails when it is set.
	CPUs []int

	// SpinRounds is how many polls in a row may find nothing before the thread
	// arms the device and sleeps: latency bought with processor time. 0 means 20,
	// or none where GOMAXPROCS is below 3, as the thread would keep the program
	// from running. Below 0 means none.
	SpinRounds int

	// FeederRounds is how often a dispatcher's goroutine yields, finding nothing to
	// deliver, before it parks; one that is parked takes microseconds to wake. 0
	// means 20, below 0 that it never parks, and uses what no other goroutine
	// does of a processor. Of all of them, the one that had the last completion
	// does not park before the poller's thread sleeps, however long that spins.
	FeederRounds int

	// CQDepth is the depth of the completion queues; a queue pair that needs more
	// gets a deeper one. 0 means 992.
	CQDepth int
}

const (
	pollBatch      = 64
	defaultSpin    = 20
	defaultRounds  = 20 // longer than a round trip takes, and short enough to be no burden
	minSpinProcs   = 3
	degradedPeriod = time.Millisecond
)

// poller is the pinned poller. Its thread never touches a channel, a mutex or
// the scheduler as long as the device works: each of these costs a locked thread
// a hand-off to another one, 14 µs or more, and the goroutine it readied waits
// behind it for longer. It polls, copies to rings, and writes to the eventfd of
// a feeder that sleeps:
//
//	device ─Poll→ poller ─ring per CQ→ feeder per dispatcher ─Complete→ endpoints
type poller struct {
	// Immutable after newPoller.
	dev    hw.Polled
	cpus   []int
	spin   int
	report func(hw.AsyncEvent)
	ready  chan error    // the outcome of the start
	done   chan struct{} // closed when the thread has ended

	// Shared.
	lanes    atomic.Pointer[[]*lane] // by the tag of the completion queue; a new list at each change
	stopping atomic.Bool
	asleep   atomic.Bool // or about to be

	// spinsFor is the feeder that the thread fed last, and nil from when it sleeps
	// until it feeds one again. Only the thread writes it.
	spinsFor atomic.Pointer[feeder]

	// The thread's.
	wcs      [pollBatch]hw.WC
	degraded bool
}

// newPoller makes a poller for a device. report takes errors of the device.
func newPoller(dev hw.Polled, cfg PollerConfig, report func(hw.AsyncEvent)) *poller {
	p := &poller{
		dev: dev, cpus: cfg.CPUs, spin: cfg.spins(), report: report,
		ready: make(chan error, 1), done: make(chan struct{}),
	}
	p.lanes.Store(new([]*lane))
	return p
}

// spins is what SpinRounds means.
func (cfg *PollerConfig) spins() int {
	if cfg.SpinRounds == 0 && goruntime.GOMAXPROCS(0) >= minSpinProcs {
		return defaultSpin
	}
	return max(0, cfg.SpinRounds)
}

// start starts the thread, and returns when it runs where it was asked to.
func (p *poller) start() error {
	go p.run()
	if err := <-p.ready; err != nil {
		<-p.done
		return err
	}
	return nil
}

// stop ends the thread. Completions not polled by then stay where they are.
func (p *poller) stop() {
	p.stopping.Store(true)
	p.dev.Wake()
	<-p.done
}

// know has the completions with a tag go to a lane, or with nil nowhere. Its caller
// excludes others.
func (p *poller) know(tag uint32, l *lane) {
	lanes := slices.Clone(*p.lanes.Load())
	for int(tag) >= len(lanes) {
		lanes = append(lanes, nil)
	}
	lanes[tag] = l
	p.lanes.Store(&lanes)
}

// stir has the device polled once more. Some of its queues don't wake the thread
// for every completion. If the thread is not asleep by now it polls before it is.
func (p *poller) stir() {
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
	p.hand(p.wcs[:n])
	return true
}

// hand copies completions to the rings of their queues, and wakes the feeders
// that sleep. One batch wakes a feeder once at most, since it no longer counts as
// asleep then.
func (p *poller) hand(wcs []hw.WC) {
	lanes := *p.lanes.Load()
	for len(wcs) > 0 {
		tag, n := wcs[0].CQ, 1
		for n < len(wcs) && wcs[n].CQ == tag {
			n++
		}
		// A queue without a lane has been closed, after its last queue pair.
		if int(tag) < len(lanes) && lanes[tag] != nil {
			p.feed(lanes[tag], wcs[:n])
		}
		wcs = wcs[n:]
	}
}

// feed hands completions of one queue to its feeder.
func (p *poller) feed(l *lane, wcs []hw.WC) {
	if p.spinsFor.Load() != l.feeder { // the feeders read it all the time
		p.spinsFor.Store(l.feeder)
	}
	l.push(wcs)
}

// sleep arms the device, looks once more, and waits. Without the second look, a
// completion that came before the device was armed would wait for the next one.
func (p *poller) sleep() {
	p.spinsFor.Store(nil)
	if p.degraded {
		time.Sleep(degradedPeriod)
		return
	}
	p.asleep.Store(true) // before the second look: see stir
	defer p.asleep.Store(false)
	err := p.dev.Arm()
	if err == nil {
		if p.poll() || p.stopping.Load() {
			return
		}
		err = p.dev.Wait()
	}
	if err != nil {
		// The device no longer wakes us, but what it flushes must be heard: so
		// from now on look from time to time.
		p.degraded = true
		p.report(hw.AsyncEvent{Kind: hw.AsyncDeviceFatal, Err: err})
	}
}
