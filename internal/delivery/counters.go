package delivery

import "sync"

// tally remembers the counters of a dispatcher at the last reset.
type tally struct {
	mu   sync.Mutex
	was  Counters
	look look // see Snapshot
}

// Counters say what happened on a dispatcher; see evd.Counters.
type Counters struct {
	Events uint64 // events that came
	Taken  uint64 // events that the consumer took; of a channel: events sent that are not in it any more
	Lost   uint64 // events that found no room, of an over-committed dispatcher; not among Events
	Sleeps uint64 // how often a goroutine in Wait or in an iterator slept, having found too few events
}

// Counters returns what happened since the dispatcher was made, or since the last
// call with reset; evd.Dispatcher.Counters says more.
func (d *Dispatcher) Counters(reset bool) Counters {
	now := d.main.counters()
	now.Lost, now.Sleeps = d.overflow.lost.Load(), d.main.consumer.sleeps.Load()
	return d.tally.since(now, reset)
}

// since returns the counters since the last reset, given those of all the time.
func (t *tally) since(now Counters, reset bool) Counters {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := t.was
	if reset {
		t.was = now
	}
	return Counters{
		Events: since(now.Events, was.Events), Taken: since(now.Taken, was.Taken),
		Lost: since(now.Lost, was.Lost), Sleeps: since(now.Sleeps, was.Sleeps),
	}
}

// since returns how far a number has grown from an earlier reading; or 0, when the
// earlier reading was too high.
func since(now, was uint64) uint64 { return now - min(now, was) }

// counters derives from the queue's positions how many events came and went. Listed
// events have no places there; their list counts them.
func (q *Queue) counters() (c Counters) {
	waiting, delivered := q.d.async.counts()
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
		queued, errs := q.batches.counts()
		c.Taken = q.places.sends() + since(delivered, errs)
		c.Events = c.Taken + queued + waiting
	default:
	}
	return c
}

// counts returns how many events are not released, and how many of them are listed
// events.
func (b *batcher) counts() (queued, errs uint64) {
	n := b.queued()
	b.mu.Lock()
	defer b.mu.Unlock()
	return uint64(n), uint64(b.errs)
}
