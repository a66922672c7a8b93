package evd

// A device that completes into queues which wake nobody for a receive that is not
// solicited has events that no consumer sees. They need not be seen before one
// that notifies, but for three who look for themselves: a Dequeue that finds
// nothing, a Wait that finds too few, and a poster without room, whose places they
// hold. These have the device looked at.

// SetStir sets what makes a device hand over the completions that it has; nil for
// nothing. It does not block, and is called whenever somebody finds too few
// events. It is for the owner of completion queues that are solicited-only.
func (d *Dispatcher) SetStir(stir func()) {
	if stir == nil {
		d.main.parked.And(^uint32(stirBit))
		d.stir.Store(nil)
		return
	}
	d.stir.Store(&stir)
	d.main.parked.Or(stirBit)
}

// Solicited reports whether all that feeds the dispatcher notifies when solicited
// only.
func (d *Dispatcher) Solicited() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.feeds.config() == ConfigSolicited
}

// stir calls what SetStir set; it is for when stirBit is.
//
//go:noinline
func (q *Queue) stir() {
	if stir := q.d.stir.Load(); stir != nil {
		(*stir)()
	}
}
