package delivery

import (
	"math/bits"

	"godat/hw"
	"godat/hw/event"
	"godat/internal/ring"
	"godat/internal/yield"
)

// wordSize is the size of a pointer, in bytes.
const wordSize = bits.UintSize / 8

// A Queue is where an endpoint puts events: a dispatcher's main queue, a route's or
// a OneShot's. Its methods are the producer's side:
//
//	Reserve      at post time; false means that there is no room
//	Put, PutAll  when the operation completed; uses one reservation per event
//	Release      when the operation completed without an event
//	Flush        when the producer has nothing more for the moment
//
// Any number of goroutines may call them at once. None blocks, allocates or calls
// user code, except a Filter and a pool's Submit. An event may stay unseen until a
// Flush.
type Queue struct {
	// Immutable. With the consumer's first two words this is one cache line.
	kind    Kind
	d       *Dispatcher
	batches *batcher // KindBatch
	shot    *OneShot // kindOneShot
	route   *Route   // of a route's queue
	filter  Filter   // KindChannel, KindBatch; nil: none
	_       [64 - 8*wordSize]byte

	consumer Consumer // KindRing, KindCallback
	places   places
	channel  channel // KindChannel
}

// Reserve takes n places, all or none. It reports false when there is no room or
// the queue is closed: INSUFFICIENT_RESOURCES/TEVD for the poster. Each place is
// used by one Put or given back by Release.
func (q *Queue) Reserve(n int) bool { return q.places.reserve(n) || q.reserveSlow(n, 0) }

// TryReserve is Reserve of one place without a fresh count of the free ones, to be
// inlined: a caller whom it refuses calls Reserve.
func (q *Queue) TryReserve() bool { return q.places.reserve(1) }

// reserveSlow is Reserve with a fresh count of the free places, and with so many
// places beyond the limit.
func (q *Queue) reserveSlow(n int, beyond uint64) bool {
	p := &q.places
	for {
		r := p.reserved.Load()
		if r >= closedBit {
			return false
		}
		yield.Point()
		done := p.done.Load()
		free := q.freed(done)
		if int64(r-free)+int64(n) <= int64(p.limit.Load()+beyond) {
			if p.reserved.CompareAndSwap(r, r+uint64(n)) {
				p.seen.Store(free)
				return true
			}
			continue
		}
		// If either changed meanwhile, an event may have counted twice: look again.
		if p.done.Load() == done && p.reserved.Load() == r {
			q.expose()
			return false
		}
	}
}

// freed counts the places that are free again, given those that producers counted
// in done. Of a channel these are the events that are not in it any more. An event
// that was sent after done was loaded is in the channel's length but not in done,
// so its place counts as not free, twice. freed is never too high.
func (q *Queue) freed(done uint64) uint64 {
	yield.Point()
	switch q.kind {
	case KindChannel:
		return done - uint64(len(q.channel.ch))
	case KindRing, KindCallback:
		return done + q.consumer.turn.taken()
	default:
		return done
	}
}

// Release gives back n reservations that no event will use.
func (q *Queue) Release(n int) {
	if q.kind >= KindChannel {
		q.releaseUnringed(n)
		return
	}
	q.giveBack(uint64(n))
	if assertions && q.consumer.ring.newest.Load() != nil {
		q.checkRing()
	}
}

// releaseUnringed is Release of a queue without a ring.
func (q *Queue) releaseUnringed(n int) {
	if q.kind == kindOneShot {
		q.shot.disarm()
		return
	}
	q.places.unused.Add(uint64(n))
	q.giveBack(uint64(n))
}

// giveBack counts n places as done. Of the places of a closed queue the last one to
// be given back ends the queue.
func (q *Queue) giveBack(n uint64) {
	if q.places.giveBack(n) {
		q.tryFinish()
	}
}

// sent is giveBack for one event that was sent.
func (q *Queue) sent() {
	yield.Point()
	q.giveBack(1)
}

// Put copies ev and delivers it in one reserved place. A silent event does not by
// itself notify; an error or a connection event always does.
func (q *Queue) Put(ev *event.Event, silent bool) {
	if silent {
		silent = maySilence(ev)
	}
	switch q.kind {
	case KindRing, KindCallback:
		q.consumer.ring.Put(ev)
		if assertions {
			q.checkRing()
		}
		q.consumer.notice.mark(silent)
	case KindChannel:
		c := &q.channel
		if !q.accepts(ev) {
			q.Release(1)
			return
		}
		if silent || c.held.Load() != 0 {
			c.putHeld(ev, silent)
			return
		}
		c.send(ev)
		q.sent()
	case KindBatch:
		q.batches.put(ev, silent)
	case kindOneShot:
		q.shot.put(ev)
	case kindOvercommitted:
		q.putOver(ev, silent)
	}
}

// PutSuccess is Put of the DTO_COMPLETION event of a success that is not silent. A
// producer that has something to do before the event is visible calls Claim, Success,
// Publish and Note by itself, if Claim returns a cell. PutSuccess reports whether the event
// is where the consumer sees it without a Flush.
func (q *Queue) PutSuccess(source any, cookie uint64, op hw.Op, length uint32) (seen bool) {
	c := &q.channel
	if q.kind != KindChannel || c.held.Load() != 0 || assertions {
		q.putSuccess(source, cookie, op, length)
		return false
	}
	if q.filter != nil && !q.filter(source, event.DTOCompletion, hw.StatusSuccess, cookie, nil) {
		q.Release(1)
		return true
	}
	c.ch <- event.Event{Number: event.DTOCompletion, Op: op, Length: length, Cookie: cookie, Source: source}
	q.sent()
	return true
}

// putSuccess is PutSuccess for queues without a channel, and for one that holds events.
func (q *Queue) putSuccess(source any, cookie uint64, op hw.Op, length uint32) {
	cell, at := q.Claim()
	if cell == nil {
		ev := event.Event{Number: event.DTOCompletion, Op: op, Length: length, Cookie: cookie, Source: source}
		q.Put(&ev, false)
		return
	}
	Success(&cell.Value, source, cookie, op, length)
	cell.Publish(at)
	q.Note()
}

// Claim returns the cell of the next event and its position; nil for a queue without a
// ring.
func (q *Queue) Claim() (cell *ring.Cell[event.Event], at uint64) {
	if q.kind != KindRing {
		return nil, 0
	}
	return q.consumer.ring.newest.Load().r.Claim()
}

// ClaimAll returns the ring in which the cells of the next n events lie, and the position of
// the first; nil for a queue without a ring. The caller writes the events, publishes them,
// and calls Note.
func (q *Queue) ClaimAll(n int) (r *ring.Reserved[event.Event], first uint64) {
	if q.kind != KindRing {
		return nil, 0
	}
	r = &q.consumer.ring.newest.Load().r
	return r, r.ClaimAll(n)
}

// Success writes the event of a success where the consumer reads it, field by field: a
// literal would be built elsewhere and copied.
func Success(ev *event.Event, source any, cookie uint64, op hw.Op, length uint32) {
	ev.Number = event.DTOCompletion
	ev.Status = hw.StatusSuccess
	ev.Op = op
	ev.Flags = 0
	ev.Length = length
	ev.Key = 0
	ev.Cookie = cookie
	ev.Source = source
	ev.Data = nil
}

// Note notes that an event that notifies was published in a ring, for Flush to see.
func (q *Queue) Note() {
	if assertions {
		q.checkRing()
	}
	q.consumer.notice.mark(false)
}

// Suppressed tells the filter, if there is one, of a suppressed request that has
// succeeded. The request's place is still to be released.
func (q *Queue) Suppressed(source any, cookie uint64) {
	if q.filter != nil {
		q.filter(source, event.DTOCompletion, hw.StatusSuccess, cookie, nil)
	}
}

// accepts reports whether the filter accepts an event.
func (q *Queue) accepts(ev *event.Event) bool {
	return q.filter == nil || q.filter(ev.Source, ev.Number, ev.Status, ev.Cookie, ev.Data)
}

// PutAll delivers evs in order, each in a reserved place, at a fraction of the cost
// of single Puts. Events with the flag Silent are silent.
func (q *Queue) PutAll(evs []event.Event) {
	switch q.kind {
	case KindRing, KindCallback:
		q.consumer.ring.PutAll(evs)
		if assertions {
			q.checkRing()
		}
		q.consumer.notice.mark(allSilent(evs))
	case KindBatch:
		q.batches.putAll(evs)
	default:
		q.putEach(evs)
	}
}

// putEach is PutAll for the kinds that take one event at a time.
func (q *Queue) putEach(evs []event.Event) {
	for len(evs) > 0 {
		n := 0
		if q.kind == KindChannel {
			n = q.channel.direct(evs)
		}
		if n > 0 {
			q.channel.sendAll(evs[:n])
		} else {
			n = 1
			q.Put(&evs[0], evs[0].Flags&event.Silent != 0)
		}
		evs = evs[n:]
	}
}

// Flush says that the producer has nothing more for the moment. If an event that
// notifies has come, Flush wakes a waiter that sleeps, sends a batch that is not
// full, or schedules a callback.
func (q *Queue) Flush() {
	if q.kind != KindRing || q.consumer.parked.Load() != 0 {
		q.flush()
	}
}

// flush is Flush for a ring with flagBits or a sleeping waiter, and for other queues.
func (q *Queue) flush() {
	c := &q.consumer
	switch q.kind {
	case KindRing:
		c.wake(false)
	case KindCallback:
		if c.notice.due() {
			q.d.upcalls.schedule()
		}
	case KindBatch:
		if q.batches.notice.due() {
			q.batches.flush(false)
		}
	case kindOvercommitted:
		q.d.main.Flush()
	default: // the events are in the channel already
	}
}

// expose makes events that are held back visible to the consumer: a poster needs
// room, or the program called Flush.
func (q *Queue) expose() {
	if main := &q.d.main.consumer; main.parked.Load()&pollBit != 0 {
		main.poll(PollElsewhere)
	}
	c := &q.consumer
	switch q.kind {
	case KindRing:
		if q.closed() || c.queued() != 0 {
			c.notice.set()
			c.wake(true)
		}
	case KindCallback:
		c.notice.set()
		q.d.upcalls.schedule()
	case KindChannel:
		q.channel.flushHeld()
	case KindBatch:
		q.batches.flush(true)
	default:
	}
}

// takeListed delivers listed events, or lets the consumer know of them.
func (q *Queue) takeListed() {
	switch q.kind {
	case KindChannel:
		q.d.async.send(&q.channel)
	case KindBatch:
		q.batches.putListed()
	default:
		q.consumer.notice.set()
		q.Flush()
	}
}

// queued counts the events that the consumer has not taken, for messages and for
// Resize: the number may be out of date at once.
func (q *Queue) queued() int {
	switch q.kind {
	case KindRing, KindCallback:
		return q.consumer.queued()
	case KindChannel:
		return len(q.channel.ch) + int(q.channel.held.Load())
	case KindBatch:
		return q.batches.queued()
	default:
		return 0
	}
}

// shut refuses further reservations. The queue ends when the last one granted was
// used or given back.
func (q *Queue) shut() {
	q.places.close()
	yield.Point()
	q.expose()
	q.tryFinish()
}

// refuse refuses further reservations. It returns false if the event of a
// reservation is still to come and would be lost: a post may have got its place
// while its endpoint still fed the dispatcher. A channel stays open for such
// events. The number of events that came only grows, so if the swap succeeds, each
// reservation has had its event.
func (q *Queue) refuse() bool {
	p := &q.places
	for {
		r, came := p.reserved.Load(), p.done.Load()
		switch q.kind {
		case KindRing, KindCallback:
			came += q.consumer.ring.Tail()
		case KindChannel, KindBatch, kindOneShot:
			came = r
		default:
		}
		if came != r {
			return false
		}
		if p.reserved.CompareAndSwap(r, r|closedBit) {
			return true
		}
	}
}

func (q *Queue) closed() bool { return q.places.closed() }

// tryFinish closes the channel of a closed queue once no reservation is left.
func (q *Queue) tryFinish() {
	switch q.kind {
	case KindBatch:
		q.batches.tryFinish()
	case KindChannel:
		q.channel.tryFinish()
	default: // a ring has nothing to close
	}
}

// checkRing panics when an event was put without a reservation.
func (q *Queue) checkRing() {
	if used := q.consumer.ring.Tail() + q.places.done.Load(); used > q.places.granted() {
		panic("evd: more events than reservations")
	}
}

// maySilence reports whether the event may be silent: only a completion without an
// error may.
func maySilence(e *event.Event) bool {
	return e.Status == 0 && e.Number.Completion()
}

func allSilent(evs []event.Event) bool {
	for i := range evs {
		if evs[i].Flags&event.Silent == 0 || !maySilence(&evs[i]) {
			return false
		}
	}
	return true
}
