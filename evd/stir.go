package evd

// A device that is polled has completions of which no consumer has heard: those
// that wake nobody, since they are not solicited, and all of them where it is the
// consumers who poll. Three look for themselves, and have the device looked at: a
// Dequeue that finds nothing, a Wait that finds too few, and a poster without
// room, whose places such completions hold.

// Look says who has a device looked at. It asks for more or less.
type Look uint8

const (
	// LookNow is that of a Dequeue. What the device has may be delivered in the
	// call: the caller looks again.
	LookNow Look = iota
	// LookAndLeave is the same for who is about to sleep, and has to be woken by
	// what comes later: a Wait, and a Dequeue on a dispatcher that tells a CNO.
	LookAndLeave
	// LookElsewhere is that of a poster. It may hold locks that deliveries take, so
	// the device is looked at by another goroutine.
	LookElsewhere
)

// SetStir sets what has a device hand over the completions that it has; nil for
// nothing. It does not block, and is called whenever somebody finds too few
// events, from any number of goroutines. It is for the owner of completion queues
// that are solicited-only, or polled by whoever looks.
func (d *Dispatcher) SetStir(stir func(Look)) {
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
func (q *Queue) stir(how Look) {
	if stir := q.d.stir.Load(); stir != nil {
		(*stir)(how)
	}
}

// dequeueStirred is Dequeue for who found nothing in a queue that is stirred.
//
//go:noinline
func (d *Dispatcher) dequeueStirred(buf []Event) (int, error) {
	q := &d.main
	how := LookNow
	if q.parked.Load()&cnoBit != 0 {
		how = LookAndLeave
	}
	q.stir(how)
	if q.cons.Load() == q.ring.Tail()<<consShift && d.async.count.Load() == 0 {
		return 0, nil
	}
	if !q.acquire(consBusy) {
		return 0, errDequeueWaiter
	}
	n := q.take(buf)
	if n < len(buf) {
		n += q.takeGap(buf[n:])
	}
	q.release()
	return n, nil
}
