package model

import "fmt"

// waiter is a wait without a time limit. An arrival or another call ends it.
type waiter struct {
	threshold int
	due       bool // the wait must return
	vague     bool // silent events came; nobody can tell whether the wait saw them before it slept
	ends      Code // the code that the wait returns; success with an event
}

const (
	subWaiter       Code = 78
	interruptedCall Code = 0x13 << 16
)

// block judges the beginning of a wait without a time limit.
func (w *World) block(c Command, r Result) error {
	d, t := w.evd(c.On), c.Int("threshold")
	v := d.usable()
	if r.Values["blocked"] != 0 && d != nil && d.unwaitable && d.waiter == nil {
		d.waiter = &waiter{threshold: t, due: true, ends: invalidState | subUnwaitable} // the driver saw the waiter before its wait was refused
		return nil
	}
	w.refuseWait(&v, d, t)
	ok, err := v.judge(r.Code)
	switch {
	case !ok:
		return err
	case r.Values["blocked"] == 0:
		if len(d.queue) < t {
			return fmt.Errorf("returned with %d events queued", len(d.queue))
		}
		return w.takeOne(d, t, r)
	}
	d.waiter = &waiter{threshold: t, due: len(d.queue) >= t}
	return nil
}

// refuseWait adds what every wait is refused for.
func (w *World) refuseWait(v *verdict, d *evd, t int) {
	if d == nil {
		return
	}
	v.when(t < 1 || t > d.qlen, invalidParameter)
	v.when(d.unwaitable, invalidState|subUnwaitable)
	v.when(d.class != 0 && d.feeds > 0 && t > 1, invalidState)
	v.when(d.waiter != nil, invalidState|subWaiter)
}

// unblock cancels the wait on a dispatcher, if there is one.
func (w *World) unblock(c Command, _ Result) error {
	if d := w.evd(c.On); d != nil && d.waiter != nil {
		d.waiter.due, d.waiter.ends = true, interruptedCall
	}
	return nil
}

// Due reports of a dispatcher whether it has a wait, whether the wait must have
// returned, and whether that can't be told (vague), so that the caller should
// cancel the wait.
func (w *World) Due(index int) (waits, due, vague bool) {
	d := w.evds[index]
	if d == nil || d.waiter == nil {
		return false, false, false
	}
	return true, d.waiter.due, d.waiter.vague && !d.waiter.due
}

// Returned judges the result of a wait that has ended.
func (w *World) Returned(index int, r Result) error {
	d := w.evds[index]
	x := d.waiter
	d.waiter = nil
	if len(d.queue) > 0 {
		w.trigger(d, false) // a wait that ends makes the CNO look at the events that are left
	}
	err := fmt.Errorf("a wait on e%d for %d events ended with %v", index, x.threshold, r.Code)
	switch {
	case r.Code == success && (x.ends == success || x.vague) && len(d.queue) >= x.threshold:
		return w.takeOne(d, x.threshold, r)
	case r.Code == success, !x.due && !x.vague:
		return err
	case r.Code == x.ends, x.vague && r.Code == interruptedCall:
		return r.check("nmore", len(d.queue))
	}
	return err
}

// takeOne takes the event that a wait returned. More may have come since.
func (w *World) takeOne(d *evd, t int, r Result) error {
	if err := w.takeAll(d, r.Events); err != nil {
		return err
	}
	if n := r.Values["nmore"]; n < t-1 || n > len(d.queue) {
		return fmt.Errorf("nmore is %d, should be %d to %d", n, t-1, len(d.queue))
	}
	return nil
}

// wake records an arrival for the wait on d, if there is one.
func (d *evd) wake(silent bool) {
	x := d.waiter
	switch {
	case x == nil:
	case silent:
		x.vague = true
	case len(d.queue) >= x.threshold:
		x.due = true
	}
}
