package sim

import (
	"slices"
	"sync"
	"sync/atomic"

	"godat/hw"
)

// queues are a device's completion queues, with the state that its poller shares.
type queues struct {
	ready   atomic.Int64 // completions in all queues; makes an empty poll one load
	polling atomic.Bool  // a goroutine is inside Poll or Arm
	waiting atomic.Bool  // a goroutine is inside Wait

	mu    sync.Mutex // the engine takes it with sim.mu held, the poller without
	cqs   []*completionQueue
	turn  int // where the next poll begins
	armed bool
}

// completionQueue implements [hw.CQ] as a ring of exactly the configured depth.
type completionQueue struct {
	dev *Device
	cfg hw.CQConfig

	// Guarded by dev.sim.mu.
	users   int
	overrun bool
	closed  bool

	// Guarded by dev.queues.mu.
	ring       []cqEntry
	head, tail uint64
}

// cqEntry is a completion in its queue. end is the queue pair whose OpEnd it is, or nil.
type cqEntry struct {
	wc  hw.WC
	end *queuePair
}

// NewCQ implements [hw.Polled].
func (d *Device) NewCQ(cfg hw.CQConfig) (hw.CQ, error) {
	const op = "sim.NewCQ"
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	switch {
	case d.closed:
		return nil, hw.Errorf(op, hw.InvalidHandle, hw.HandleIA, "the device is closed")
	case cfg.Depth <= 0 || cfg.Depth > maxCQDepth:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "depth %d", cfg.Depth)
	}
	c := &completionQueue{dev: d, cfg: cfg, ring: make([]cqEntry, cfg.Depth)}
	d.queues.mu.Lock()
	d.queues.cqs = append(d.queues.cqs, c)
	d.queues.mu.Unlock()
	d.children++
	return c, nil
}

// Depth implements [hw.CQ].
func (c *completionQueue) Depth() int { return len(c.ring) }

// Close implements [hw.CQ].
func (c *completionQueue) Close() error {
	const op = "sim.CQ.Close"
	d := c.dev
	d.sim.mu.Lock()
	defer d.sim.mu.Unlock()
	switch {
	case c.closed:
		return hw.Errorf(op, hw.InvalidHandle, hw.NoSubtype, "closed twice")
	case c.users > 0:
		return hw.Errorf(op, hw.InvalidState, hw.StateEVDInUse, "%d queues attached", c.users)
	}
	c.closed = true
	d.children--
	d.queues.mu.Lock()
	defer d.queues.mu.Unlock()
	d.queues.ready.Add(-int64(c.tail - c.head))
	d.queues.cqs = slices.DeleteFunc(d.queues.cqs, func(o *completionQueue) bool { return o == c })
	return nil
}

// push stores a completion, and wakes the poller if that has armed the device. When the
// queue is full, since its owner attached more than it holds, push drops the completion
// and reports an overrun. The engine calls it with sim.mu held.
func (c *completionQueue) push(e cqEntry, solicited bool) {
	d := c.dev
	e.wc.CQ = c.cfg.Tag
	d.queues.mu.Lock()
	full := c.tail-c.head == uint64(len(c.ring))
	wake := false
	if !full {
		c.ring[c.tail%uint64(len(c.ring))] = e
		c.tail++
		d.queues.ready.Add(1)
		if d.queues.armed && (solicited || !c.cfg.SolicitedOnly) {
			d.queues.armed, wake = false, true
		}
	}
	d.queues.mu.Unlock()
	if wake {
		d.waiter.completed()
	}
	if full {
		d.violateLocked("a completion queue of %d had no room for a completion", len(c.ring))
		if !c.overrun {
			c.overrun = true
			d.asyncs = append(d.asyncs, hw.AsyncEvent{Kind: hw.AsyncCQOverrun, CQ: c})
		}
	}
}

// Poll implements [hw.Polled]. Each queue gives its share of the room before any
// gives more, and the next poll begins with the next queue.
func (d *Device) Poll(wcs []hw.WC) int {
	d.calls.polls.Add(1)
	if d.queues.ready.Load() == 0 || len(wcs) == 0 {
		return 0
	}
	d.enter(&d.queues.polling, "Poll")
	defer d.queues.polling.Store(false)
	d.queues.mu.Lock()
	defer d.queues.mu.Unlock()
	k := len(d.queues.cqs)
	n := 0
	for found := true; found && n < len(wcs); {
		found = false
		share := max(1, (len(wcs)-n)/max(k, 1))
		for i := range k {
			m := d.queues.cqs[(d.queues.turn+i)%k].take(wcs[n:min(len(wcs), n+share)])
			n, found = n+m, found || m > 0
		}
	}
	if k > 0 {
		d.queues.turn = (d.queues.turn + 1) % k
	}
	d.queues.ready.Add(-int64(n))
	return n
}

// take moves completions from one queue to wcs, under dev.queues.mu.
func (c *completionQueue) take(wcs []hw.WC) (n int) {
	for n < len(wcs) && c.head < c.tail {
		e := &c.ring[c.head%uint64(len(c.ring))]
		wcs[n] = e.wc
		if e.end != nil {
			e.end.endsPolled.Add(1)
		}
		*e = cqEntry{}
		c.head++
		n++
	}
	return n
}

// Arm implements [hw.Polled].
func (d *Device) Arm() error {
	d.calls.arms.Add(1)
	d.enter(&d.queues.polling, "Arm")
	defer d.queues.polling.Store(false)
	if d.queues.waiting.Load() {
		d.violate("Arm while a poller is in Wait")
	}
	d.queues.mu.Lock()
	d.queues.armed = true
	d.queues.mu.Unlock()
	return nil
}

// Wait implements [hw.Polled].
func (d *Device) Wait() error {
	d.calls.waits.Add(1)
	d.enter(&d.queues.waiting, "Wait")
	defer d.queues.waiting.Store(false)
	return d.waiter.wait()
}

// Sleep implements [hw.Sleeper].
func (d *Device) Sleep() error {
	d.calls.waits.Add(1)
	d.enter(&d.queues.waiting, "Sleep")
	defer d.queues.waiting.Store(false)
	return d.waiter.sleep()
}

// Wake implements [hw.Polled].
func (d *Device) Wake() { d.waiter.wake() }

// enter records a violation when a second poller is inside the device.
func (d *Device) enter(inside *atomic.Bool, call string) {
	if !inside.CompareAndSwap(false, true) {
		d.violate("%s while another poller is inside the device", call)
	}
}
