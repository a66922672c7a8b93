package delivery

import "sync"

// tally remembers the counters of a dispatcher at the last reset.
type tally struct {
	mu   sync.Mutex
	was  Counters
	look look // see Snapshot
}

// Counters say what happened on a dispatcher; evd.Counters says more.
type Counters struct{ Events, Taken, Lost, Sleeps uint64 }

// Counters returns what happened since the dispatcher was made, or since the last
// call with reset.
func (d *Dispatcher) Counters(reset bool) Counters {
	now := d.counters()
	d.tally.mu.Lock()
	defer d.tally.mu.Unlock()
	was := d.tally.was
	if reset {
		d.tally.was = now
	}
	return Counters{
		Events: since(now.Events, was.Events), Taken: since(now.Taken, was.Taken),
		Lost: since(now.Lost, was.Lost), Sleeps: since(now.Sleeps, was.Sleeps),
	}
}

// since returns how far a number has grown from an earlier reading; or 0, when the
// earlier reading was too high.
func since(now, was uint64) uint64 { return now - min(now, was) }

// counters returns what happened so far. How many events came and went it derives from the
// queue's positions. Listed events have no places there; their list counts them.
func (d *Dispatcher) counters() (c Counters) {
	q := &d.main
	c.Lost, c.Sleeps = d.overflow.lost.Load(), q.consumer.sleeps.Load()
	waiting, delivered := d.async.counts()
	switch q.kind {
	case KindRing, KindCallback:
		c.Taken = q.consumer.turn.taken() + delivered
		c.Events = q.consumer.ring.Tail() + delivered + waiting
	case KindChannel, kindSink: // listed events are sent like others
		inside := uint64(len(q.channel.ch))
		sent := q.places.sends()
		c.Taken = since(sent, inside)
		c.Events = sent + uint64(q.channel.held.Load()) + waiting
	case KindBatch:
		queued, listed := q.batches.counts()
		c.Taken = q.places.sends() + since(delivered, uint64(listed))
		c.Events = c.Taken + uint64(queued) + waiting
	default:
	}
	return c
}
