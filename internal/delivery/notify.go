package delivery

import (
	"runtime"

	"godat/hw/event"
	"godat/internal/yield"
)

// check/models/parked.pml is the model of notice and parked, without the CNO.
//
// The CNO's side of a ring. The CNO is one more consumer to wake, and comes after a
// waiter: cnoBit in parked says that there is one, so Flush looks at one word for
// both.
//
// The CNO is triggered by what wakes a waiter: the notice is due. Who triggers the CNO
// clears the notice before that; so a producer that finds the notice quiet again put its
// event before the trigger. A waiter that leaves also clears the notice, before it counts for
// the last time what is queued, and looks once more when it has left: a producer that put an
// event in between relied on the waiter.

// Bits in parked beside the sleeping waiter's threshold.
const (
	cnoBit        = 1 << 31 // the CNO is to be triggered
	unwaitableBit = 1 << 30 // no goroutine may wait
	pollBit       = 1 << 29 // the device may keep silent events to itself
	flagBits      = cnoBit | unwaitableBit | pollBit
)

// wake wakes the waiter if it sleeps: with force in any case, else if an event
// notifies and the claimed events reach the waiter's threshold, or a listed event
// waits. Of several callers, the one that wins the swap sends the token. If no
// waiter sleeps, wake triggers the CNO.
func (c *Consumer) wake(force bool) {
	for {
		p := c.parked.Load()
		t := p &^ flagBits
		if t == 0 {
			if p&cnoBit != 0 {
				c.trigger()
			}
			return
		}
		if !force {
			if !c.notice.due() {
				return
			}
			claimed := c.ring.Tail() - c.turn.taken()
			if claimed < uint64(t) && c.d.async.count.Load() == 0 {
				return
			}
		}
		yield.Point()
		if c.parked.CompareAndSwap(p, p&flagBits) {
			c.token <- struct{}{}
			return
		}
	}
}

// trigger triggers the CNO if an event notifies and no waiter will see to it. A
// waiter may have come between the two looks; then the event is left to that
// waiter.
func (c *Consumer) trigger() {
	if c.turn.awaited() || !c.notice.take() {
		return
	}
	yield.Point()
	if c.turn.awaited() {
		c.notice.set()
		c.wake(false)
		return
	}
	if trigger := c.notifier.Load(); trigger != nil {
		(*trigger)()
	}
}

// recount counts the queued events, and clears the notice before that: after this
// look only an event that notifies is noticed. A waiter calls it for its first look,
// before it sleeps, and for its last, on a dispatcher with a CNO.
func (c *Consumer) recount() int {
	c.notice.clear()
	yield.Point()
	c.awaitClaimed()
	return c.ready(all)
}

// takeGap looks again after a Dequeue that did not fill buf: if there is a CNO, an
// event that triggered it may lie behind one that is not published.
func (c *Consumer) takeGap(buf []event.Event) int {
	c.awaitClaimed()
	return c.take(buf)
}

// awaitClaimed waits until all events that were claimed before the call are published,
// which takes as long as a producer takes to fill a place. A consumer that changes parked or the
// notice calls it before its last look. A producer claims a place by a locked instruction,
// publishes the event, and then looks at the notice and at parked; the publication may be
// delayed beyond its looks. So either the producer looks after the change, or awaitClaimed
// waits for its event.
func (c *Consumer) awaitClaimed() {
	c.turn.own.Check()
	for claimed := c.ring.Tail(); c.ring.Next()+c.ring.Ready(all) < claimed; {
		runtime.Gosched()
	}
}

// SetNotifier sets the function that is called when an event notifies and no
// goroutine waits; nil for none. If events are queued, SetNotifier calls trigger at
// once, but not while a goroutine waits: a waiter looks when it leaves. trigger must
// not block. Only one goroutine at a time calls SetNotifier.
func (c *Consumer) SetNotifier(trigger func()) {
	if trigger == nil || c.d.main.closed() {
		c.parked.And(^uint32(cnoBit))
		c.notifier.Store(nil)
		return
	}
	c.notifier.Store(&trigger)
	c.parked.Or(cnoBit)
	if !c.turn.acquire(turnBusy) {
		return
	}
	c.notice.clear() // forgets what came before
	some := !c.empty()
	c.release()
	if some {
		trigger()
	}
}

// SetUnwaitable makes Wait fail with INVALID_STATE/EVD_UNWAITABLE, also a Wait that
// is under way, and ends iterators.
func (c *Consumer) SetUnwaitable() {
	c.barred.Add(1) // before the waiter wakes
	if c.parked.Or(unwaitableBit)&^flagBits != 0 {
		c.wake(true)
	}
}

// ClearUnwaitable undoes SetUnwaitable.
func (c *Consumer) ClearUnwaitable() { c.parked.And(^uint32(unwaitableBit)) }

// Unwaitable reports whether the dispatcher is unwaitable.
func (c *Consumer) Unwaitable() bool { return c.parked.Load()&unwaitableBit != 0 }
