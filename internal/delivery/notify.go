package delivery

import (
	"godat/hw/event"
	"godat/internal/yield"
)

// The CNO's side of a ring. It is one more consumer to wake, which comes after a
// waiter: cnoBit in parked says that there is one, so Flush looks at one word
// for both.
//
// What notifies is the same: notify is due. It is put back to quiet by whoever
// tells the CNO of it, before that; so a producer that finds it quiet again put
// its event before the CNO was told. A waiter that leaves puts it back as well,
// before it counts for the last time what is queued, and looks once more when it
// has left: who came in between relied on it.

// Bits in parked beside the sleeping waiter's threshold.
const (
	cnoBit        = 1 << 31 // the CNO is to be told
	unwaitableBit = 1 << 30 // nobody may wait
	pollBit       = 1 << 29 // the device may keep silent events to itself
	flagBits      = cnoBit | unwaitableBit | pollBit
)

// tellCNO triggers the CNO if something notifies and nobody waits who sees to it.
// Somebody may have begun to, after the first look, and then it was his.
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

// awaited reports whether somebody waits, asleep or not.
func (q *Queue) awaited() bool { return q.cons.Load()&consMask > consBusy }

// recount is the look from which on only what notifies counts: a waiter's first
// one, before it sleeps, and the last, on a dispatcher with a CNO. It counts the
// events that are queued. Its caller is the consumer.
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

// takeGap looks again after a Dequeue that did not fill buf: if there is a CNO,
// behind an event that is not published may be one that the CNO was told
// of. Its caller is the consumer.
func (q *Queue) takeGap(buf []event.Event) int {
	if q.gap(q.ring.Tail(), 0) {
		return q.take(buf)
	}
	return 0
}

// gap reports whether some of the claimed events are not published, with ready
// ones before them, and has whoever publishes them notify, silent or not. One who has
// done so did not hear of it, so the caller looks again.
func (q *Queue) gap(claimed uint64, ready int) bool {
	if q.ring.Next()+uint64(ready) >= claimed {
		return false
	}
	yield.Point()
	q.notify.CompareAndSwap(quiet, gapped)
	return true
}

// SetNotifier sets what is called when an event notifies and nobody waits; nil for
// nothing. If events are queued it is called at once, but not while somebody waits: a
// waiter looks when it leaves. tell must not block. Only one goroutine at a time calls
// SetNotifier.
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
	q.notify.Store(quiet) // of what came before
	some := q.queuedNow() != 0 || d.async.count.Load() != 0
	q.release()
	if some {
		tell()
	}
}

// SetUnwaitable has Wait fail with INVALID_STATE/EVD_UNWAITABLE, also for a caller that
// is in it and finds too few events, and ends iterators.
func (d *Dispatcher) SetUnwaitable() {
	q := &d.main
	if q.parked.Or(unwaitableBit)&^flagBits != 0 {
		q.wake(true)
	}
}

// ClearUnwaitable takes SetUnwaitable back.
func (d *Dispatcher) ClearUnwaitable() { d.main.parked.And(^uint32(unwaitableBit)) }

// Unwaitable reports whether SetUnwaitable was called last.
func (d *Dispatcher) Unwaitable() bool { return d.main.parked.Load()&unwaitableBit != 0 }
