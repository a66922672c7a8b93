package delivery

import (
	"godat/hw/event"
	"godat/internal/yield"
)

// The CNO's side of a ring. The CNO is one more consumer to wake, and comes after a
// waiter: cnoBit in parked says that there is one, so Flush looks at one word for
// both.
//
// The CNO is triggered by what wakes a waiter: notify is due. A goroutine that
// triggers the CNO sets notify to quiet before that; so a producer that finds
// notify quiet again put its event before the trigger. A waiter that leaves also
// sets notify to quiet, before it counts for the last time what is queued, and
// looks once more when it has left: a producer that put an event in between relied
// on the waiter.

// Bits in parked beside the sleeping waiter's threshold.
const (
	cnoBit        = 1 << 31 // the CNO is to be triggered
	unwaitableBit = 1 << 30 // no goroutine may wait
	pollBit       = 1 << 29 // the device may keep silent events to itself
	flagBits      = cnoBit | unwaitableBit | pollBit
)

// tellCNO triggers the CNO if an event notifies and no waiter will see to it. A
// waiter may have come between the two looks; then the event is left to that
// waiter.
func (q *Queue) tellCNO() {
	if q.awaited() || !q.notify.CompareAndSwap(due, quiet) {
		return
	}
	yield.Point()
	if q.awaited() {
		q.notify.Store(due)
		q.wake(false)
		return
	}
	if tell := q.d.notifier.Load(); tell != nil {
		(*tell)()
	}
}

// awaited reports whether a goroutine waits, asleep or not.
func (q *Queue) awaited() bool { return q.cons.Load()&consMask > consBusy }

// recount counts the queued events, and sets notify to quiet before that: after
// this look only an event that notifies is noticed. A waiter calls it for its first
// look, before it sleeps, and for its last, on a dispatcher with a CNO. The caller
// is the consumer.
func (q *Queue) recount() int {
	q.notify.Store(quiet)
	yield.Point()
	claimed := q.ring.Tail()
	n := q.queued(all)
	if q.gap(claimed, n) {
		yield.Point()
		n = q.queued(all)
	}
	return n
}

// takeGap looks again after a Dequeue that did not fill buf: if there is a CNO, an
// event that triggered it may lie behind one that is not published. The caller is
// the consumer.
func (q *Queue) takeGap(buf []event.Event) int {
	if q.gap(q.ring.Tail(), 0) {
		return q.take(buf)
	}
	return 0
}

// gap reports whether some of the claimed events, behind so many ready ones, are
// not published. If so it sets gapped, which makes the producers that publish them
// notify, silent or not. A producer that published its event before that did not
// see gapped, so the caller looks again.
func (q *Queue) gap(claimed uint64, ready int) bool {
	if q.ring.Next()+uint64(ready) >= claimed {
		return false
	}
	yield.Point()
	q.notify.CompareAndSwap(quiet, gapped)
	return true
}

// SetNotifier sets the function that is called when an event notifies and no
// goroutine waits; nil for none. If events are queued, SetNotifier calls tell at
// once, but not while a goroutine waits: a waiter looks when it leaves. tell must
// not block. Only one goroutine at a time calls SetNotifier.
func (d *Dispatcher) SetNotifier(tell func()) {
	q := &d.main
	if tell == nil || q.closed() {
		q.parked.And(^uint32(cnoBit))
		d.notifier.Store(nil)
		return
	}
	d.notifier.Store(&tell)
	q.parked.Or(cnoBit)
	if !q.acquire(consBusy) {
		return
	}
	q.notify.Store(quiet) // forgets what came before
	some := q.queuedNow() != 0 || d.async.count.Load() != 0
	q.release()
	if some {
		tell()
	}
}

// SetUnwaitable makes Wait fail with INVALID_STATE/EVD_UNWAITABLE, also a Wait that
// is under way, and ends iterators.
func (d *Dispatcher) SetUnwaitable() {
	q := &d.main
	if q.parked.Or(unwaitableBit)&^flagBits != 0 {
		q.wake(true)
	}
}

// ClearUnwaitable undoes SetUnwaitable.
func (d *Dispatcher) ClearUnwaitable() { d.main.parked.And(^uint32(unwaitableBit)) }

// Unwaitable reports whether the dispatcher is unwaitable.
func (d *Dispatcher) Unwaitable() bool { return d.main.parked.Load()&unwaitableBit != 0 }
