package delivery

import (
	"math/bits"

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
	kind     Kind
	failures bool // of completions, filter sees failures with a marked cookie alone
	quiet    bool // filter does not hear of suppressed requests
	d        *Dispatcher
	batches  *batcher // KindBatch
	shot     *OneShot // kindOneShot
	route    *Route   // of a route's queue
	filter   Filter   // KindChannel, KindBatch, kindSink; nil: none
	_        [64 - 8*wordSize]byte

	consumer Consumer // KindRing, KindCallback
	places   places
	channel  channel // KindChannel
}

// Reserve takes n places, all or none. It reports false when there is no room or
// the queue is closed: INSUFFICIENT_RESOURCES/TEVD for the poster. Each place is
// used by one Put or given back by Release. A sink has no places, and takes everything.
func (q *Queue) Reserve(n int) bool {
	return q.kind == kindSink || q.places.reserve(n) || q.reserveSlow(n, 0)
}

// Sink reports whether the queue is a sink, whose events take no places.
func (q *Queue) Sink() bool { return q.kind == kindSink }

// TryReserve is Reserve of one place without a fresh count of the free ones, to be
// inlined: a caller whom it refuses calls Reserve.
func (q *Queue) TryReserve() bool { return q.kind == kindSink || q.places.reserve(1) }

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
		done := p.allDone()
		free := q.freed(done)
		if int64(r-free)+int64(n) <= int64(p.limit.Load()+beyond) {
			if p.reserved.CompareAndSwap(r, r+uint64(n)) {
				p.seen.Store(free)
				return true
			}
			continue
		}
		// If either changed meanwhile, an event may have counted twice: look again.
		if p.allDone() == done && p.reserved.Load() == r {
			p.refused.Add(1)
			q.expose()
			return false
		}
	}
}

// freed counts the places that are free again, given those that producers counted as done.
// Of a channel these are the events that are not in it any more. An event that was sent after
// done was loaded is in its length but not in done, so freed may be too low, and is never
// too high.
func (q *Queue) freed(done uint64) uint64 {
	yield.Point()
	switch q.kind {
	case KindChannel, kindSink:
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
	switch q.kind {
	case kindSink: // nothing was counted
	case kindOneShot:
		q.shot.disarm()
	default:
		q.places.unused.Add(uint64(n))
		q.giveBack(uint64(n))
	}
}

// giveBack counts n places as done. Of a closed queue the last one ends the queue.
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
	case KindChannel, kindSink:
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
		return len(q.channel.ch) + int(max(0, q.channel.held.Load()))
	case KindBatch:
		n, _ := q.batches.counts()
		return n
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

// refuse refuses further reservations. It returns false if the event of a reservation is
// still to come and would be lost: a post may have got its place while its endpoint still
// fed the dispatcher. A channel stays open for such events. The number of events that came
// only grows, so if the swap succeeds, each reservation has had its event.
func (q *Queue) refuse() bool {
	p := &q.places
	for {
		r, came := p.reserved.Load(), p.done.Load()
		switch q.kind {
		case KindRing, KindCallback:
			came += q.consumer.ring.Tail()
		case KindChannel, KindBatch, kindOneShot, kindSink:
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
	case kindSink:
		if q.channel.ch != nil { // the sink of some operations alone has none
			q.channel.tryFinish()
		}
	default: // a ring has nothing to close
	}
}

// checkRing panics when an event was put without a reservation.
func (q *Queue) checkRing() {
	if used := q.consumer.ring.Tail() + q.places.done.Load(); used > q.places.granted() {
		panic("evd: more events than reservations")
	}
}
