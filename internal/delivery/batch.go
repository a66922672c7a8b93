package delivery

import (
	"sync"

	"godat/hw/event"
	"godat/internal/release"
	"godat/internal/yield"
)

// Batches is the way of a dispatcher that sends batches of events: see [Batcher].
var Batches = &Way{Name: "batch", Begin: func(q *Queue, cfg *Config) {
	q.SinkTo(newBatcher(q, cfg.MaxLen, cfg.BatchMin, cfg.BatchMax))
	q.lasts = true
}}

// A Batch is what is behind an evd.Batch: a run of events, in order.
type Batch struct {
	Index int // its place in Batcher.All

	b    *Batcher
	evs  []event.Event // capacity fixed
	sent bool          // sent and not released; under b.mu
	errs int           // listed events in it, which have no reservation
}

// Events are the batch's events.
func (b *Batch) Events() []event.Event { return b.evs }

// Release gives the batch and the places of its events back. A second call panics
// unless the batch was sent again by then.
func (b *Batch) Release() { b.b.release(b) }

// A Batcher collects events and sends them in batches, which it recycles.
//
// There is always a place for an event that was reserved: the batches have places for all
// reservations if they are sent full, and one that is not full is sent only while the free
// batches still have places for all other reservations. Otherwise it keeps filling until
// the consumer releases one.
type Batcher struct {
	// Immutable.
	q    *Queue
	sink func(*Batch) // takes the batches that are sent; never blocks
	end  func()       // called after the last batch, unless the dispatcher has a last event
	all  []Batch
	size int // the most events in a batch
	min  int // the fewest, unless an event is urgent
	room int // the most events that there can be

	notice notice     // due if flush has something to send
	done   *laneCount // of the places of events in batches that were released; written under mu

	mu     sync.Mutex
	cur    *Batch   // being filled; nil when no batch is free
	free   []*Batch // a ring of all
	first  int      // place of the first free batch in free
	nfree  int
	came   uint64 // events that Put took
	out    int    // events in sent batches
	errs   int    // listed events among out and cur
	loud   bool   // cur has an event that notifies
	urgent bool   // cur does not wait for min
	wanted bool   // cur is to go out as soon as enough batches are free
	ended  bool   // end was called
}

const (
	usualBatch   = 32 // events, not too large a batch for any dispatcher
	spareBatches = 8  // batches that may be out and are not full
)

func newBatcher(q *Queue, maxLen, minimum, size int) *Batcher {
	room := maxLen + asyncRoom
	size = min(size, room, max(usualBatch, room/spareBatches)) // so the spare ones hold no more than room
	n := (room+size-1)/size + spareBatches
	q.places.lanes = make([]laneCount, 1)
	b := &Batcher{q: q, all: make([]Batch, n), size: size, min: minimum, room: room, done: &q.places.lanes[0]}
	evs := make([]event.Event, n*size)
	b.free = make([]*Batch, n)
	b.nfree = n
	for i := range b.all {
		b.all[i] = Batch{Index: i, b: b, evs: evs[i*size : i*size : (i+1)*size]}
		b.free[i] = &b.all[i]
	}
	b.next()
	return b
}

// All are all the batches.
func (b *Batcher) All() []Batch { return b.all }

// SendTo sets where batches go. send must not block, given room for all
// batches; end is called after the last batch was sent.
func (b *Batcher) SendTo(send func(*Batch), end func()) { b.sink, b.end = send, end }

// Put puts the events that the filter accepts, some at a time.
func (b *Batcher) Put(evs []event.Event) {
	if b.q.filter == nil {
		b.putSome(evs)
		return
	}
	from, refused := 0, 0
	for i := range evs {
		if !b.q.accepts(&evs[i]) {
			b.putSome(evs[from:i])
			from = i + 1
			refused++
		}
	}
	b.putSome(evs[from:])
	if refused > 0 {
		b.Free(refused)
	}
}

// putSome puts events that follow each other.
func (b *Batcher) putSome(evs []event.Event) {
	if len(evs) == 0 {
		return
	}
	b.mu.Lock()
	b.came += uint64(len(evs))
	for len(evs) > 0 {
		n := min(len(evs), b.size-len(b.cur.evs))
		b.addAll(evs[:n])
		evs = evs[n:]
	}
	b.sendIfHalf()
	b.mu.Unlock()
}

// addAll appends events to the current batch, which has room for them, and sends it when it
// is full. The caller holds mu, as for every method below that does not lock it.
func (b *Batcher) addAll(evs []event.Event) {
	c := b.cur
	c.evs = append(c.evs, evs...) // within its capacity
	if len(c.evs) == b.size {
		b.send()
		return
	}
	b.loud = b.loud || !allSilent(evs)
	for i := range evs {
		if !maySilence(&evs[i]) {
			b.urgent = true
			break
		}
	}
}

// sendIfHalf sends the current batch if it has half of the limit in it, and sets the
// notice if Flush has something to send.
func (b *Batcher) sendIfHalf() {
	if b.q.closed() {
		b.finish()
		return
	}
	if b.cur == nil {
		return
	}
	if len(b.cur.evs) >= b.half() {
		b.trySend()
	}
	if b.due() && !b.notice.due() {
		b.notice.set()
	}
}

// due reports whether the current batch is to go out with the next Flush.
func (b *Batcher) due() bool { return b.urgent || b.loud && len(b.cur.evs) >= b.min }

// Flush sends the current batch: with all in any case, else if it has an urgent
// event, or one that notifies and at least min events.
func (b *Batcher) Flush(all bool) {
	if !all && !b.notice.due() {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if all && b.q.d.async.count.Load() != 0 {
		b.takeListed()
	}
	if b.cur != nil && (all || b.due()) {
		b.trySend()
	}
	b.finish()
}

// Free gives back places without events.
func (b *Batcher) Free(n int) { b.q.Unuse(n) }

// trySend sends the current batch, unless it is empty, or the free batches would not have
// places for all events that may still come.
func (b *Batcher) trySend() {
	n := len(b.cur.evs)
	if n == 0 {
		return
	}
	if b.nfree*b.size < b.room-b.out-n {
		b.wanted = true
		return
	}
	b.send()
}

// send sends the current batch, and begins another.
func (b *Batcher) send() {
	c := b.cur
	b.out += len(c.evs)
	c.sent = true
	b.next()
	yield.Point()
	b.sink(c)
}

// next begins a batch, if one is free.
func (b *Batcher) next() {
	b.cur = nil
	if b.nfree > 0 {
		b.cur = b.free[b.first]
		b.first = b.after(1)
		b.nfree--
	}
	b.loud, b.urgent, b.wanted = false, false, false
	if b.notice.due() {
		b.notice.clear()
	}
}

// after returns the place in free that is n steps behind the first free batch's.
func (b *Batcher) after(n int) int {
	i := b.first + n
	if i >= len(b.free) {
		i -= len(b.free)
	}
	return i
}

func (b *Batcher) release(c *Batch) {
	b.mu.Lock()
	if !c.sent {
		b.mu.Unlock()
		panic("evd: a batch was released twice")
	}
	n := len(c.evs)
	c.sent = false
	b.out -= n
	b.errs -= c.errs
	release.Uint64(&b.done.sent, b.done.sent.Load()+uint64(n-c.errs)) // the unlock orders it
	c.errs = 0
	c.evs = c.evs[:0]
	b.free[b.after(b.nfree)] = c
	b.nfree++
	if b.cur == nil {
		b.next()
	}
	if b.q.d.async.count.Load() != 0 {
		b.takeListed()
	}
	if b.wanted {
		b.trySend()
	}
	b.finish()
	b.mu.Unlock()
}

// takeListed moves as many listed events into the batch as there is room for. The rest
// follows when a batch is released, unless the end comes before: behind it nothing goes out.
func (b *Batcher) takeListed() {
	for !b.ended && b.errs < asyncRoom && b.cur != nil {
		var one [1]event.Event
		if !b.q.d.async.pop(&one[0]) {
			return
		}
		b.errs++
		b.cur.errs++
		b.addAll(one[:])
		if b.cur != nil {
			b.trySend()
		}
	}
}

// half is how many events the current batch keeps at most.
func (b *Batcher) half() int { return max(1, int(b.q.places.limit.Load()/2)) }

// finish calls end, which closes the channel, or sends the last event, when the queue is
// closed, no producer has a reservation left, and all events are sent.
func (b *Batcher) finish() {
	q := b.q
	if b.ended || !q.closed() {
		return
	}
	pending := 0
	if b.cur != nil {
		b.trySend()
		if b.cur != nil {
			pending = len(b.cur.evs)
		}
	}
	producers := q.places.granted() - q.places.allDone() - uint64(b.out+pending-b.errs)
	switch {
	case producers != 0 || pending != 0:
	case q.d.last == nil:
		b.ended = true
		b.end()
	case b.cur != nil: // otherwise the next release begins a batch
		b.ended = true
		b.errs++ // it has no reservation either
		b.cur.errs++
		b.cur.evs = append(b.cur.evs, *q.d.last)
		b.send()
	}
}

// Counts counts the events so far, and the listed ones in batches that are not released.
func (b *Batcher) Counts() (came uint64, listed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.came, b.errs
}
