package delivery

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"godat/hw/event"

	"godat/hw"
	"godat/internal/yield"
)

// Kind is how a queue delivers.
type Kind uint8

// The kinds of queues of dispatchers. A route's is a KindChannel.
const (
	KindRing     Kind = iota // a ring, and a consumer that dequeues or waits
	KindCallback             // a ring, and a task that calls back
	KindChannel              // a channel of events
	KindBatch                // a channel of batches
	kindOneShot              // the channel of a one-shot request

	kindOvercommitted // a ring that may be full
)

// String names the kind.
func (k Kind) String() string {
	return [...]string{"ring", "callback", "channel", "batch", "one-shot", "over-committed"}[k]
}

// closedBit in the count of reservations: no more are granted.
const closedBit = 1 << 63

// inFlight is how many events may be counted twice, between their send and the
// count of it.
const inFlight = 64

// asyncRoom is how many listed events, which have no reservation, are in a channel
// or in batches at a time. That is beyond the limit, so that they need not wait
// behind reservations that nobody uses.
const asyncRoom = 16

// slack is how many places a channel has beyond those that its owner asked for:
// for the events that are counted twice, and for the listed ones, which count as
// others do once they are in it.
const slack = inFlight + asyncRoom

// doneEvery is how many sends of PutAll share one update of the count.
const doneEvery = 8

// A Queue is where an endpoint puts events: a dispatcher's main queue, a
// route's or a one-shot request's. Its methods are the producer's side:
//
//	Reserve      at post time; false means that there is no room
//	Put, PutAll  when it completed; uses one reservation per event
//	Release      when it completed without an event
//	Flush        when the producer has nothing more for the moment
//
// They may be called by any number of goroutines at once, and none blocks,
// allocates or calls user code. What was put may stay unseen until a Flush.
type Queue struct {
	// Immutable.
	kind    Kind
	filter  bool // Config.Filter sees the events first; beside kind, in the same word
	d       *Dispatcher
	ch      chan event.Event         // KindChannel, kindOneShot
	ring    rings                    // KindRing, KindCallback
	batches *batcher                 // KindBatch
	shot    *OneShot                 // kindOneShot
	route   *Route                   // of a route's queue
	spins   int                      // how often a waiter looks before it sleeps
	_       [64 - bits.UintSize]byte // the eight words above take as many bytes as one has bits

	// The posters' side of the places: see Reserve.
	reserved atomic.Uint64
	seen     atomic.Uint64
	limit    atomic.Uint64
	_        [40]byte

	// The completers' side: the places given back, or used in a channel.
	done     atomic.Uint64
	held     atomic.Int32 // len(hold)
	finished atomic.Bool
	unused   atomic.Uint64 // of done, without an event; of a channel or batches
	_        [40]byte

	// What Flush looks at: is anything new that notifies, and does anybody
	// sleep. See ring consumers in consumer.go.
	notify atomic.Uint32
	parked atomic.Uint32 // a threshold, and flagBits
	_      [56]byte

	// The ring's consumer: how many events it took, and which kind it is.
	cons  atomic.Uint64
	token chan struct{} // wakes the sleeping waiter
	turn  chan struct{} // wakes an iterator that sleeps for its turn
	turns atomic.Int32  // how many do
	_     [32]byte

	requestsFirst bool // in takeListed; the consumer's

	mu       sync.Mutex
	hold     []event.Event // silent events of KindChannel, under mu
	listed   int           // listed events that may be in the channel, under mu
	listedAt uint64        // sends when the last of them was sent, under mu
}

// Reserve takes n places, all or none. It reports false when there is no room
// or the queue is closed: INSUFFICIENT_RESOURCES/TEVD for the poster. Each
// place is given back by one Put or Release.
//
// reserved only grows, so if the swap succeeds nothing was reserved since the
// load; and seen is a number of places that were free again at some time, which
// only grows too, so at worst it is too small. The closed bit fails the
// comparison.
func (q *Queue) Reserve(n int) bool {
	r := q.reserved.Load()
	yield.Point()
	if r-q.seen.Load()+uint64(n) <= q.limit.Load() && q.reserved.CompareAndSwap(r, r+uint64(n)) {
		return true
	}
	return q.reserveSlow(n, 0)
}

// reserveSlow is Reserve with a fresh look at what is free, and with so many
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
		// If something was done meanwhile it may have been counted twice.
		if q.done.Load() == done && q.reserved.Load() == r {
			q.expose()
			return false
		}
	}
}

// freed counts the places that are free again, given those that producers
// counted. For a channel that is what is not in it any more. An event that was
// sent after done was loaded is in the channel's length but not in done, and so
// counts as not free, twice: never the other way round.
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

// Release gives n reservations back that no event will use.
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

// releaseUnringed is Release of a queue that is no ring.
func (q *Queue) releaseUnringed(n int) {
	if q.kind == kindOneShot {
		q.shot.disarm()
		return
	}
	q.unused.Add(uint64(n))
	q.giveBack(uint64(n))
}

// giveBack counts n places as done. Whoever gives the last one back after the
// queue was closed ends it: of that count and the closed bit, each side writes
// its own before it reads the other's.
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

// Put delivers ev, which is copied, in one reserved place. A silent event does
// not by itself notify; an error or a connection event always does.
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

// PutCompletion is Put of a DTO_COMPLETION event with these fields. Into a ring or
// a channel they go without being copied on the way.
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

// PutAll delivers evs in order, in as many reserved places, at a fraction of
// the cost of single Puts. Events with the flag Silent are silent.
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

// Flush says that the producer has nothing more for the moment: a waiter that
// sleeps is woken, a batch that is not full goes out, a callback is scheduled,
// if anything that notifies has come.
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
	default: // a channel has it already
	}
}

// expose makes what is held back visible to the consumer: somebody needs room,
// or asked for it.
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

// shut refuses further reservations. The queue ends when the last one granted
// has come back.
func (q *Queue) shut() {
	q.reserved.Or(closedBit)
	yield.Point()
	q.expose()
	q.tryFinish()
}

func (q *Queue) closed() bool { return q.reserved.Load() >= closedBit }

// idle reports whether nothing is reserved or queued.
func (q *Queue) idle() bool { return q.reserved.Load()&^closedBit == q.done.Load() }

// tryFinish closes the channel once the queue is closed and no reservation is
// left: nobody can send any more.
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
	default: // nobody can tell whether a ring ended
	}
}

// checkRing panics when an event was put without a reservation.
func (q *Queue) checkRing() {
	used := q.ring.Tail() + q.done.Load()
	if used > q.reserved.Load()&^closedBit {
		panic("evd: more events than reservations")
	}
}

// maySilence reports whether the event may be silent at all.
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
