package delivery

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"godat/hw/event"

	"godat/hw"
	"godat/internal/yield"
)

// closedBit, in the count of reservations, says that no more are granted.
const closedBit = 1 << 63

// inFlight is how many events may count twice at a time, between their send and the
// count of it.
const inFlight = 64

// asyncRoom is how many listed events, which have no reservation, may be in a
// channel or in batches at a time. Their room is beyond the limit, so that they
// need not wait behind reservations without events.
const asyncRoom = 16

// slack is how many places a channel has beyond those that its owner asked for:
// inFlight for the events that count twice, and asyncRoom for the listed events,
// which count as others do once they are in the channel.
const slack = inFlight + asyncRoom

// doneEvery is how many sends of PutAll share one update of done.
const doneEvery = 8

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
	// Immutable.
	kind    Kind
	filter  bool // the dispatcher's Filter sees the events first; beside kind, in the same word
	d       *Dispatcher
	ch      chan event.Event         // KindChannel, kindOneShot
	ring    rings                    // KindRing, KindCallback
	batches *batcher                 // KindBatch
	shot    *OneShot                 // kindOneShot
	route   *Route                   // of a route's queue
	spins   int                      // how often a waiter looks before it sleeps
	_       [64 - bits.UintSize]byte // fills the cache line: the eight words above take bits.UintSize bytes

	// The posters' side: how many places are reserved. See Reserve.
	reserved atomic.Uint64
	seen     atomic.Uint64
	limit    atomic.Uint64
	_        [40]byte

	// The completers' side: how many places were given back, or used in a channel.
	done     atomic.Uint64
	held     atomic.Int32 // len(hold)
	finished atomic.Bool
	unused   atomic.Uint64 // places in done that had no event; of a channel or batches
	_        [40]byte

	// Flush looks at these: did an event that notifies come, and does a waiter
	// sleep. See consumer.go for their values.
	notify atomic.Uint32
	parked atomic.Uint32 // a threshold, and flagBits
	_      [56]byte

	// The ring's consumer: how many events it took, and of which kind it is.
	cons  atomic.Uint64
	token chan struct{} // wakes the sleeping waiter
	turn  chan struct{} // wakes an iterator that sleeps for its turn
	turns atomic.Int32  // how many iterators do
	_     [32]byte

	requestsFirst bool // in takeListed; the consumer's

	mu       sync.Mutex
	hold     []event.Event // silent events of KindChannel, under mu
	listed   int           // listed events that may be in the channel, under mu
	listedAt uint64        // sends when the last of them was sent, under mu
}

// Reserve takes n places, all or none. It reports false when there is no room or
// the queue is closed: INSUFFICIENT_RESOURCES/TEVD for the poster. Each place is
// used by one Put or given back by Release.
//
// reserved only grows, so if the swap succeeds no place was reserved since the
// load. seen is how many places were free again at an earlier time. That number
// only grows, too, so at worst seen is too small. closedBit makes the comparison
// fail.
func (q *Queue) Reserve(n int) bool {
	r := q.reserved.Load()
	yield.Point()
	if r-q.seen.Load()+uint64(n) <= q.limit.Load() && q.reserved.CompareAndSwap(r, r+uint64(n)) {
		return true
	}
	return q.reserveSlow(n, 0)
}

// reserveSlow is Reserve with a fresh count of the free places, and with so many
// places beyond the limit.
func (q *Queue) reserveSlow(n int, beyond uint64) bool {
	for {
		r := q.reserved.Load()
		if r >= closedBit {
			return false
		}
		yield.Point()
		done := q.done.Load()
		free := q.freed(done)
		if int64(r-free)+int64(n) <= int64(q.limit.Load()+beyond) {
			if q.reserved.CompareAndSwap(r, r+uint64(n)) {
				q.seen.Store(free)
				return true
			}
			continue
		}
		// If either changed meanwhile, an event may have counted twice: look again.
		if q.done.Load() == done && q.reserved.Load() == r {
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
		return done - uint64(len(q.ch))
	case KindRing, KindCallback:
		return done + q.cons.Load()>>consShift
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
	if assertions && q.ring.newest.Load() != nil {
		q.checkRing()
	}
}

// releaseUnringed is Release of a queue without a ring.
func (q *Queue) releaseUnringed(n int) {
	if q.kind == kindOneShot {
		q.shot.disarm()
		return
	}
	q.unused.Add(uint64(n))
	q.giveBack(uint64(n))
}

// giveBack counts n places as done. The goroutine that gives back the last one
// after the queue was closed ends the queue: giveBack writes done before it reads
// closedBit, and the closer writes closedBit before it reads done.
func (q *Queue) giveBack(n uint64) {
	done := q.done.Add(n)
	r := q.reserved.Load()
	if assertions && done > r&^closedBit {
		panic("evd: more places given back than reserved")
	}
	if r >= closedBit {
		q.tryFinish()
	}
}

// sent is giveBack for one event that was sent.
func (q *Queue) sent() {
	yield.Point()
	if assertions {
		q.giveBack(1)
		return
	}
	q.done.Add(1)
	if q.reserved.Load() >= closedBit {
		q.tryFinish()
	}
}

// Put copies ev and delivers it in one reserved place. A silent event does not by
// itself notify; an error or a connection event always does.
func (q *Queue) Put(ev *event.Event, silent bool) {
	if silent {
		silent = maySilence(ev)
	}
	switch q.kind {
	case KindRing, KindCallback:
		q.ring.Put(ev)
		if assertions {
			q.checkRing()
		}
		q.mark(silent)
	case KindChannel:
		if q.filter && !q.d.filter(ev.Source, ev.Number, ev.Status, ev.Cookie, ev.Data) {
			q.Release(1)
			return
		}
		if silent || q.held.Load() != 0 {
			q.putHeld(ev, silent)
			return
		}
		q.send(ev)
		q.sent()
	case KindBatch:
		q.batches.put(ev, silent)
	case kindOneShot:
		q.shot.put(ev)
	case kindOvercommitted:
		q.putOver(ev, silent)
	}
}

// PutCompletion is Put of a DTO_COMPLETION event with these fields. They go into a
// ring or a channel without being copied on the way.
func (q *Queue) PutCompletion(source any, cookie uint64, status hw.Status, op hw.Op, flags event.Flags, length uint32) {
	if q.kind == KindChannel && flags&event.Silent == 0 && q.held.Load() == 0 && !assertions {
		if q.filter && !q.d.filter(source, event.DTOCompletion, status, cookie, nil) {
			q.Release(1)
			return
		}
		q.ch <- event.Event{
			Number: event.DTOCompletion, Status: status, Op: op, Flags: flags,
			Length: length, Cookie: cookie, Source: source,
		}
		q.sent()
		return
	}
	if q.kind != KindRing {
		ev := event.Event{
			Number: event.DTOCompletion, Status: status, Op: op, Flags: flags,
			Length: length, Cookie: cookie, Source: source,
		}
		q.Put(&ev, flags&event.Silent != 0)
		return
	}
	r := &q.ring.newest.Load().r
	ev, t := r.Claim()
	ev.Number = event.DTOCompletion
	ev.Status = status
	ev.Op = op
	ev.Flags = flags
	ev.Length = length
	ev.Key = 0
	ev.Cookie = cookie
	ev.Source = source
	ev.Data = nil
	r.Publish(t)
	if assertions {
		q.checkRing()
	}
	q.mark(flags&event.Silent != 0 && status == hw.StatusSuccess)
}

// PutAll delivers evs in order, each in a reserved place, at a fraction of the cost
// of single Puts. Events with the flag Silent are silent.
func (q *Queue) PutAll(evs []event.Event) {
	switch q.kind {
	case KindRing, KindCallback:
		q.ring.PutAll(evs)
		if assertions {
			q.checkRing()
		}
		q.mark(allSilent(evs))
	case KindBatch:
		q.batches.putAll(evs)
	default:
		q.putEach(evs)
	}
}

// Flush says that the producer has nothing more for the moment. If an event that
// notifies has come, Flush wakes a waiter that sleeps, sends a batch that is not
// full, or schedules a callback.
func (q *Queue) Flush() {
	if q.kind == KindRing {
		if q.parked.Load() != 0 {
			q.wake(false)
		}
		return
	}
	switch q.kind {
	case KindCallback:
		if q.notify.Load() == due {
			q.d.upcalls.schedule()
		}
	case KindBatch:
		if q.notify.Load() == due {
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
	if q.d.main.parked.Load()&pollBit != 0 {
		q.pollDevice(PollElsewhere)
	}
	switch q.kind {
	case KindRing:
		if q.closed() || q.queuedNow() != 0 {
			q.notify.Store(due)
			q.wake(true)
		}
	case KindCallback:
		q.notify.Store(due)
		q.d.upcalls.schedule()
	case KindChannel:
		if q.held.Load() != 0 {
			q.mu.Lock()
			q.sendHeld()
			q.mu.Unlock()
		}
	case KindBatch:
		q.batches.flush(true)
	default:
	}
}

// shut refuses further reservations. The queue ends when the last one granted was
// used or given back.
func (q *Queue) shut() {
	q.reserved.Or(closedBit)
	yield.Point()
	q.expose()
	q.tryFinish()
}

func (q *Queue) closed() bool { return q.reserved.Load() >= closedBit }

// idle reports whether nothing is reserved or queued.
func (q *Queue) idle() bool { return q.reserved.Load()&^closedBit == q.done.Load() }

// tryFinish closes the channel once the queue is closed and no reservation is left:
// no producer can send any more.
func (q *Queue) tryFinish() {
	switch q.kind {
	case KindBatch:
		q.batches.tryFinish()
	case KindChannel:
		if q.idle() && q.finished.CompareAndSwap(false, true) {
			close(q.ch)
			if q.route != nil {
				q.d.drop(q.route)
			}
		}
	default: // a ring has nothing to close
	}
}

// checkRing panics when an event was put without a reservation.
func (q *Queue) checkRing() {
	used := q.ring.Tail() + q.done.Load()
	if used > q.reserved.Load()&^closedBit {
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
