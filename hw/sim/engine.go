package sim

import (
	"runtime"
	"slices"
	"time"
)

// run is the engine's goroutine. It makes steps while there is work, and sleeps
// otherwise. Close ends it.
func (d *Device) run() {
	defer close(d.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		d.sim.mu.Lock()
		worked := d.turn()
		stop := d.closed
		next := d.nextDeadline()
		d.sim.mu.Unlock()
		switch {
		case stop:
			return
		case worked:
			runtime.Gosched()
		case next.IsZero():
			<-d.wake
		default:
			timer.Reset(time.Until(next))
			select {
			case <-d.wake:
			case <-timer.C:
			}
		}
	}
}

// burst is how many steps an engine without delays makes before it yields.
const burst = 64

// turn makes a step or, if nothing is to be delayed, up to burst steps. With one step each, the engine and a poller
// would take turns on one processor, and each poll would find one completion. turn reports whether there may be more work.
func (d *Device) turn() bool {
	steps := 1
	if d.sim.cfg.MaxDelay < 0 {
		steps = burst
	}
	for range steps {
		if !d.step() {
			return false
		}
		if d.closed {
			break
		}
	}
	return true
}

// stepOnce is step for a device with Config.manual. One goroutine at a time calls it.
func (d *Device) stepOnce() bool {
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	return d.step()
}

// step does one piece of work and reports whether there was any. The caller holds
// sim.mu; step releases it while it copies memory and while it calls the owner.
func (d *Device) step() bool {
	d.steps++
	d.checkDeadlines()
	switch {
	case len(d.asyncs) > 0:
		d.tellAsync()
		return true
	case len(d.lowQueues) > 0:
		d.callOnLow()
		return true
	case len(d.arrivals) > 0:
		d.arrive()
		return true
	}
	if len(d.runnable) == 0 {
		return false
	}
	q := d.runnable[0]
	d.runnable, q.queued = slices.Delete(d.runnable, 0, 1), false
	if q.wait > 0 {
		q.wait--
		d.push(q)
		return true
	}
	if q.work() {
		d.schedule(q)
	}
	return true
}

// schedule puts a queue pair into the run queue, with a delay, with sim.mu held. Any
// device's engine and any call of an owner may do so.
func (d *Device) schedule(q *queuePair) {
	if q.queued {
		return
	}
	q.wait = d.delay()
	d.push(q)
	d.wakeEngine()
}

// delay chooses a number of steps up to Config.MaxDelay.
func (d *Device) delay() int {
	if n := d.sim.cfg.MaxDelay; n > 0 {
		return d.rng.IntN(n + 1)
	}
	return 0
}

func (d *Device) push(q *queuePair) {
	q.queued = true
	d.runnable = append(d.runnable, q)
}

func (d *Device) wakeEngine() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// setDeadline makes the engine call q.expire at the given time, unless clearDeadline is
// called before.
func (d *Device) setDeadline(q *queuePair, at time.Time) {
	q.deadline = at
	d.timed = append(d.timed, q)
	d.wakeEngine()
}

func (d *Device) clearDeadline(q *queuePair) {
	if q.deadline.IsZero() {
		return
	}
	q.deadline = time.Time{}
	d.timed = slices.DeleteFunc(d.timed, func(o *queuePair) bool { return o == q })
}

func (d *Device) nextDeadline() (next time.Time) {
	for _, q := range d.timed {
		if next.IsZero() || q.deadline.Before(next) {
			next = q.deadline
		}
	}
	return next
}

// checkDeadlines calls expire for the queue pairs whose deadline has passed.
func (d *Device) checkDeadlines() {
	if len(d.timed) == 0 {
		return
	}
	now := time.Now()
	for i := 0; i < len(d.timed); {
		q := d.timed[i]
		if now.Before(q.deadline) {
			i++
			continue
		}
		d.clearDeadline(q)
		q.expire()
	}
}

// tellAsync hands the oldest asynchronous event to OpenConfig.Async.
func (d *Device) tellAsync() {
	ev := d.asyncs[0]
	d.asyncs = d.asyncs[1:]
	if d.async == nil {
		return
	}
	d.sim.mu.Unlock()
	d.async(ev)
	d.sim.mu.Lock()
}
