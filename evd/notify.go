package evd

import "godat/hw"

// ModifyCNO replaces the dispatcher's CNO by c; nil removes it. If events are
// queued and the dispatcher is enabled, c is triggered, unless the dispatcher has c
// already.
//
// Only a dispatcher of ModeQueue can have a CNO: the other modes are permanent
// waiters, and ModifyCNO returns INVALID_STATE/EVD_WAITER. A CNO that is closed, or
// another adapter's, is INVALID_HANDLE/CNO. DAT: dat_evd_modify_cno.
func (d *Dispatcher) ModifyCNO(c *CNO) error {
	const op = "evd.ModifyCNO"
	if !d.isMade() {
		return invalidHandle(op)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.cno.Load()
	switch {
	case d.inner.Closed():
		return invalidHandle(op)
	case d.mode != ModeQueue && c != nil:
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

// Enable lets events trigger the CNO, as they do from the start. If events are
// queued, they trigger it now. Enabling again does nothing. DAT: dat_evd_enable.
func (d *Dispatcher) Enable() error { return d.setDisabled("evd.Enable", false) }

// Disable keeps events from triggering the CNO. They are queued as before, and
// Dequeue and Wait find them. Disabling again does nothing. DAT: dat_evd_disable.
func (d *Dispatcher) Disable() error { return d.setDisabled("evd.Disable", true) }

func (d *Dispatcher) setDisabled(op string, disabled bool) error {
	if !d.isMade() {
		return invalidHandle(op)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.inner.Closed():
		return invalidHandle(op)
	case d.disabled != disabled:
		d.disabled = disabled
		d.arm()
	}
	return nil
}

// arm lets events trigger the CNO if there is one and the dispatcher is enabled,
// and triggers it for queued events; else it stops that. The caller holds mu.
func (d *Dispatcher) arm() {
	c := d.cno.Load()
	if c == nil || d.disabled {
		d.inner.Consumer().SetNotifier(nil)
		return
	}
	d.inner.Consumer().SetNotifier(func() { c.trigger(d) })
}

// leaveCNO removes the CNO of a dispatcher that closes.
func (d *Dispatcher) leaveCNO() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.cno.Swap(nil); c != nil {
		d.inner.Consumer().SetNotifier(nil)
		c.part(d, true)
	}
}

// SetUnwaitable makes Wait fail with INVALID_STATE/EVD_UNWAITABLE, also a Wait that
// is under way, and ends iterators of ModeQueue. Dequeue and the CNO work as
// before. DAT: dat_evd_set_unwaitable.
func (d *Dispatcher) SetUnwaitable() error {
	if d.closed() {
		return invalidHandle("evd.SetUnwaitable")
	}
	d.inner.Consumer().SetUnwaitable()
	return nil
}

// ClearUnwaitable undoes SetUnwaitable. DAT: dat_evd_clear_unwaitable.
func (d *Dispatcher) ClearUnwaitable() error {
	if d.closed() {
		return invalidHandle("evd.ClearUnwaitable")
	}
	d.inner.Consumer().ClearUnwaitable()
	return nil
}
