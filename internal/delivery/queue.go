package delivery

import (
	"math/bits"

	"godat/hw"
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
// user code, except a Filter, evd.Config.Func and a pool's Submit. An event may stay unseen
// until a Flush.
type Queue struct {
	// Immutable. With the consumer's first two words this is one cache line.
	form      form
	placeless bool // events take no places
	lasts     bool // a Sink delivers also what comes when the dispatcher is closed
	failures  bool // of completions, filter sees failures with a marked cookie alone
	d         *Dispatcher
	sink      Sink                                                     // toSink
	success   func(source any, cookie uint64, op hw.Op, length uint32) // of a Sink that is a quick; else nil
	filter    Filter                                                   // of a channel, or a Sink that asks it; nil: none
	_         [64 - 8*wordSize]byte

	consumer Consumer // toRing
	places   places
	channel  channel // toChannel
}

// Reserve takes n places, all or none. It reports false when there is no room or
// the queue is closed: INSUFFICIENT_RESOURCES/TEVD for the poster. Each place is
// used by one Put or given back by Release. A placeless queue takes everything.
func (q *Queue) Reserve(n int) bool {
	return q.placeless || q.places.reserve(n) || q.reserveSlow(n, 0)
}

// Placeless reports whether the queue's events take no places.
func (q *Queue) Placeless() bool { return q.placeless }

// TryReserve is Reserve of one place without a fresh count of the free ones, to be
// inlined: a caller whom it refuses calls Reserve.
func (q *Queue) TryReserve() bool { return q.placeless || q.places.reserve(1) }

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
	switch q.form {
	case toChannel:
		return done - uint64(len(q.channel.ch))
	case toRing:
		return done + q.consumer.turn.taken()
	default:
		return done
	}
}

// Release gives back n reservations that no event will use.
func (q *Queue) Release(n int) {
	if q.form != toRing {
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
	if q.form == toSink {
		q.sink.Free(n)
		return
	}
	q.Unuse(n)
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
// notifies has come, Flush wakes a waiter that sleeps, or a Sink does what it does then.
func (q *Queue) Flush() {
	if q.form != toRing || q.consumer.parked.Load() != 0 {
		q.flush()
	}
}

// flush is Flush for a ring with flagBits or a sleeping waiter, and for other queues.
func (q *Queue) flush() {
	switch q.form {
	case toRing:
		q.consumer.wake(false)
	case toSink:
		q.sink.Flush(false)
	default: // the events are in the channel already
	}
}

// expose makes events that are held back visible to the consumer: a poster needs
// room, or the program called Flush.
func (q *Queue) expose() {
	if main := &q.d.main.consumer; main.parked.Load()&pollBit != 0 {
		main.poll(PollElsewhere)
	}
	switch c := &q.consumer; q.form {
	case toRing:
		if q.closed() || c.queued() != 0 {
			c.notice.set()
			c.wake(true)
		}
	case toChannel:
		q.channel.flushHeld()
	case toSink:
		q.sink.Flush(true)
	}
}

// takeListed delivers listed events, or lets the consumer know of them.
func (q *Queue) takeListed() {
	switch q.form {
	case toRing:
		q.consumer.notice.set()
		q.Flush()
	case toChannel:
		q.channel.sendListed()
	case toSink:
		q.sink.Flush(true)
	}
}

// queued counts the events that the consumer has not taken, for messages and for
// Resize: the number may be out of date at once.
func (q *Queue) queued() int {
	switch q.form {
	case toRing:
		return q.consumer.queued()
	case toChannel:
		return len(q.channel.ch) + int(max(0, q.channel.held.Load()))
	default:
		sent := q.places.sends()
		came, listed := q.sink.Counts()
		return int(since(came, sent)) + listed
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
		r := p.reserved.Load()
		if q.form != toChannel && !q.lasts && q.came() != r {
			return false
		}
		if p.reserved.CompareAndSwap(r, r|closedBit) {
			return true
		}
	}
}

// came counts the reservations that have had their event, or will have none.
func (q *Queue) came() uint64 {
	if q.form == toRing {
		return q.places.done.Load() + q.consumer.ring.Tail()
	}
	unused := q.places.unused.Load()
	came, _ := q.sink.Counts()
	return unused + came
}

func (q *Queue) closed() bool { return q.places.closed() }

// tryFinish ends a closed queue once no reservation is left.
func (q *Queue) tryFinish() {
	switch q.form {
	case toRing: // it has nothing to end
	case toChannel:
		q.channel.tryFinish()
	case toSink:
		q.sink.Flush(true)
	}
}

// checkRing panics when an event was put without a reservation.
func (q *Queue) checkRing() {
	if used := q.consumer.ring.Tail() + q.places.done.Load(); used > q.places.granted() {
		panic("evd: more events than reservations")
	}
}
