package evd

import (
	"godat/hw"
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
	stirBit       = 1 << 29 // the device may keep silent events to itself
	flagBits      = cnoBit | unwaitableBit | stirBit
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
	if c := q.d.cno.Load(); c != nil {
		c.trigger(q.d)
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
func (q *Queue) takeGap(buf []Event) int {
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

// ModifyCNO gives the dispatcher another CNO, or with nil none. If events are
// queued, and the dispatcher is enabled, the new one is triggered. The one it has
// already is left alone.
//
// It is for dispatchers of ModeQueue: others deliver by themselves, which makes
// them permanent waiters, INVALID_STATE/EVD_WAITER. A CNO that is closed, or
// another adapter's, is INVALID_HANDLE/CNO. DAT: dat_evd_modify_cno.
func (d *Dispatcher) ModifyCNO(c *CNO) error {
	const op = "evd.ModifyCNO"
	if d == nil {
		return invalidHandle(op)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.cno.Load()
	switch {
	case d.main.closed():
		return invalidHandle(op)
	case d.main.kind != kindRing && c != nil:
		return &hw.Error{Op: op, Type: hw.InvalidState, Sub: hw.StateEVDWaiter}
	case c == old:
		return nil
	}
	if c != nil {
		if err := c.join(op, d); err != nil {
			return err
		}
	}
	d.cno.Store(c)
	if old != nil {
		old.part(d, false)
	}
	d.arm()
	return nil
}

// Enable has events trigger the CNO, as they do from the start. If events are
// queued they trigger it now. Enabling again does nothing. DAT: dat_evd_enable.
func (d *Dispatcher) Enable() error { return d.setDisabled("evd.Enable", false) }

// Disable keeps events from triggering the CNO. They are queued, and may be
// dequeued and waited for, as ever. Disabling again does nothing. DAT:
// dat_evd_disable.
func (d *Dispatcher) Disable() error { return d.setDisabled("evd.Disable", true) }

func (d *Dispatcher) setDisabled(op string, disabled bool) error {
	if d == nil {
		return invalidHandle(op)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.main.closed():
		return invalidHandle(op)
	case d.disabled != disabled:
		d.disabled = disabled
		d.arm()
	}
	return nil
}

// arm turns the telling of the CNO on or off, and tells it of what is queued. mu
// is held. Of a waiter the CNO hears nothing: it looks when it leaves.
func (d *Dispatcher) arm() {
	q := &d.main
	c := d.cno.Load()
	if c == nil || d.disabled || q.closed() {
		q.parked.And(^uint32(cnoBit))
		return
	}
	q.parked.Or(cnoBit)
	if !q.acquire(consBusy) {
		return
	}
	q.notify.Store(quiet) // of what came before
	some := q.queuedNow() != 0 || d.async.count.Load() != 0
	q.release()
	if some {
		c.trigger(d)
	}
}

// leaveCNO parts from the CNO of a dispatcher that is closed.
func (d *Dispatcher) leaveCNO() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.cno.Swap(nil); c != nil {
		d.main.parked.And(^uint32(cnoBit))
		c.part(d, true)
	}
}

// SetUnwaitable has Wait fail with INVALID_STATE/EVD_UNWAITABLE, also for who is
// in it and finds too few events, and ends iterators of ModeQueue. Dequeue and
// the CNO go on. DAT: dat_evd_set_unwaitable.
func (d *Dispatcher) SetUnwaitable() error {
	const op = "evd.SetUnwaitable"
	if d == nil || d.main.closed() {
		return invalidHandle(op)
	}
	q := &d.main
	if q.parked.Or(unwaitableBit)&^flagBits != 0 {
		q.wake(true)
	}
	return nil
}

// ClearUnwaitable takes SetUnwaitable back. DAT: dat_evd_clear_unwaitable.
func (d *Dispatcher) ClearUnwaitable() error {
	if d == nil || d.main.closed() {
		return invalidHandle("evd.ClearUnwaitable")
	}
	d.main.parked.And(^uint32(unwaitableBit))
	return nil
}
