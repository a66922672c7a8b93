package delivery

// Counters say what has happened on a dispatcher; see evd.Counters.
type Counters struct {
	Events uint64 // that came
	Taken  uint64 // that the consumer got; of a channel: that are not in it any more
	Lost   uint64 // that found no room, of an over-committed dispatcher; not among Events
	Sleeps uint64 // of goroutines in Wait that found too few events
}

// Counters tells what has happened since the dispatcher was made, or since the last
// call with reset; evd.Dispatcher.Counters says more.
func (d *Dispatcher) Counters(reset bool) Counters {
	now := d.main.counters()
	now.Lost, now.Sleeps = d.overflow.lost.Load(), d.sleeps.Load()
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.counted
	if reset {
		d.counted = now
	}
	return Counters{
		Events: since(now.Events, was.Events), Taken: since(now.Taken, was.Taken),
		Lost: since(now.Lost, was.Lost), Sleeps: since(now.Sleeps, was.Sleeps),
	}
}

// since is a number that grows, counted from an earlier one; or 0, when the
// earlier one was read too high.
func since(now, was uint64) uint64 { return now - min(now, was) }

// counters derives from the queue's words what came and what went. Asynchronous
// errors have no places there and are counted by their list.
func (q *Queue) counters() (c Counters) {
	waiting, delivered := q.d.async.counts()
	switch q.kind {
	case KindRing, KindCallback:
		c.Taken = q.cons.Load()>>consShift + delivered
		c.Events = q.ring.Tail() + delivered + waiting
	case KindChannel: // errors are sent like others
		inside := uint64(len(q.ch))
		sent := q.done.Load() - q.unused.Load()
		c.Taken = since(sent, inside)
		c.Events = sent + uint64(q.held.Load()) + waiting
	case KindBatch:
		queued, errs := q.batches.counts()
		c.Taken = q.done.Load() - q.unused.Load() + since(delivered, errs)
		c.Events = c.Taken + queued + waiting
	default:
	}
	return c
}

// counts says how many errors wait, and how many were delivered.
func (l *asyncList) counts() (waiting, delivered uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(l.count.Load()), l.delivered
}

// counts says how many events were not released, and how many of them are errors.
func (b *batcher) counts() (queued, errs uint64) {
	n := b.queued()
	b.mu.Lock()
	defer b.mu.Unlock()
	return uint64(n), uint64(b.errs)
}
