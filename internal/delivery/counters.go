package delivery

import "sync"

// tally remembers the counters of a dispatcher at the last reset.
type tally struct {
	mu   sync.Mutex
	was  Counters
	most Counters // of all readings
	look look     // see Snapshot
}

// Counters say what happened on a dispatcher; evd.Counters says more.
type Counters struct{ Events, Taken, Lost, Sleeps uint64 }

// Counters returns what happened since the dispatcher was made, or since the last
// call with reset.
func (d *Dispatcher) Counters(reset bool) Counters {
	d.tally.mu.Lock()
	defer d.tally.mu.Unlock()
	now, was := d.counters(), d.tally.was
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
// queue's positions. Listed events have no places there; their list counts them. An event that
// moves from one position to the next while counters reads is not counted, and never counted
// twice: counters reads the last position first, and an event leaves one before it enters the
// next. No reading is below an earlier one. The caller holds tally.mu.
func (d *Dispatcher) counters() Counters {
	now, most := d.readCounters(), &d.tally.most
	most.Events, most.Taken = max(most.Events, now.Events), max(most.Taken, now.Taken)
	most.Lost, most.Sleeps = now.Lost, now.Sleeps
	return *most
}

func (d *Dispatcher) readCounters() (c Counters) {
	q := &d.main
	c.Lost, c.Sleeps = d.lost.Load(), q.consumer.sleeps.Load()
	switch q.form {
	case toRing:
		waiting, delivered := d.async.counts()
		c.Taken = q.consumer.turn.taken() + delivered
		c.Events = q.consumer.ring.Tail() + delivered + waiting
	case toChannel: // listed events are sent like others
		sent := q.places.sends()
		c.Taken = since(sent, uint64(len(q.channel.ch)))
		held := max(0, q.channel.held.Load())
		waiting, _ := d.async.counts()
		c.Events = sent + uint64(held) + waiting
	case toSink:
		sent := q.places.sends()
		came, listed := q.sink.Counts()
		waiting, delivered := d.async.counts()
		c.Taken = sent + since(delivered, uint64(listed))
		c.Events = came + delivered + waiting
	}
	return c
}
