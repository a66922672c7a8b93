package delivery

import (
	"math"
	"sync/atomic"
	"unsafe"

	"godat/hw/event"
)

// Consumer is the consumer's side of a ring: Dequeue, Wait, iterators and the CNO
// of a dispatcher with a ring. Any goroutine may call the exported methods, and those by which
// producers wake it. The others belong to the goroutine whose turn it is, which take and the waits check.
type Consumer struct {
	ring rings
	d    *Dispatcher

	// Flush looks at these: did an event that notifies come, and does a waiter
	// sleep.
	notice notice
	parked atomic.Uint32 // the sleeping waiter's threshold, and flagBits
	sleeps atomic.Uint64 // see Counters
	token  chan struct{} // wakes the sleeping waiter
	spins  int           // how often a waiter looks before it sleeps; immutable

	notifier   atomic.Pointer[func()]         // see SetNotifier
	pollDevice atomic.Pointer[func(PollHint)] // see SetPollDevice
	barred     atomic.Uint32                  // how often SetUnwaitable was called
	_          [64 - 20 - 4*wordSize]byte

	turn          turn
	requestsFirst bool // in takeListed; the consumer's
	_             [63 - unsafe.Sizeof(turn{})]byte
}

// Ring is the way of a dispatcher that keeps events until a consumer takes them, as DAT does.
var Ring = &Way{Name: "queue", Grows: true, Helps: true, Begin: func(q *Queue, cfg *Config) {
	q.form = toRing
	q.consumer.init(cfg.MaxLen)
}}

// spins is how often a waiter looks and yields before it sleeps.
const spins = 20

// init makes the ring, with so many places.
func (c *Consumer) init(places int) {
	c.ring.grow(places)
	c.spins = spins
	c.token = make(chan struct{}, 1)
	c.turn.next = make(chan struct{}, 1)
}

// release frees the places of the events that the consumer took, and lets other
// consumers in.
func (c *Consumer) release() { c.turn.release(c.ring.Next()) }

// take moves queued events to buf, the listed ones and the ring's.
func (c *Consumer) take(buf []event.Event) int {
	c.turn.own.Check()
	s := c.ring.newest.Load()
	if s.older != nil || c.d.async.count.Load() != 0 {
		return c.takeListed(buf)
	}
	return s.r.Take(buf) // here, to save a call
}

// takeListed is take for when a ring was replaced, or listed events wait.
//
//go:noinline
func (c *Consumer) takeListed(buf []event.Event) (n int) {
	c.turn.own.Check()
	return c.d.async.takeBeside(&c.ring, &c.requestsFirst, buf)
}

// first takes the first event. The consumer knows that there is one.
func (c *Consumer) first() event.Event {
	var one [1]event.Event
	c.take(one[:])
	return one[0]
}

// all is a limit for ready that no queue reaches.
const all = math.MaxInt

// ready counts the events that take would find, up to at least limit.
func (c *Consumer) ready(limit int) int {
	return int(c.d.async.count.Load()) + int(c.ring.Ready(uint64(limit)))
}

// queued counts the events of the ring that no consumer has taken, published or not.
// Any goroutine may call it; the number may be out of date at once.
func (c *Consumer) queued() int {
	taken := c.turn.taken()
	return int(c.ring.Tail() - taken)
}

// empty reports whether no event waits for a consumer.
func (c *Consumer) empty() bool { return c.queued() == 0 && c.d.async.count.Load() == 0 }

// Dequeue moves queued events to buf; see evd.Dispatcher.Dequeue. It is the dispatcher's
// and not its Consumer's so that evd's is inlined.
func (d *Dispatcher) Dequeue(buf []event.Event) (n int, err error) {
	q, c := &d.main, &d.main.consumer
	if q.closed() {
		return 0, errDequeueClosed
	}
	if q.form != toRing {
		return 0, errDequeueWaiter
	}
	w, tail := c.turn.word.Load(), c.ring.Tail()
	if w == tail<<turnShift && d.async.count.Load() == 0 {
		if c.parked.Load()&pollBit != 0 {
			return c.dequeuePolled(buf)
		}
		return 0, nil
	}
	if !c.turn.tryAcquire(w, turnBusy) && !c.turn.acquire(turnBusy) {
		return 0, errDequeueWaiter
	}
	s := c.ring.newest.Load()
	if s.older != nil || d.async.count.Load() != 0 {
		n = c.takeListed(buf)
	} else {
		n = s.r.Take(buf[:min(tail-w>>turnShift, uint64(len(buf)))]) // so Take does not look behind the last one
	}
	if n < len(buf) && c.parked.Load() != 0 {
		n += c.takeGap(buf[n:])
	}
	c.turn.releaseSoon(c.ring.Next())
	return n, nil
}

// dequeuePolled is Dequeue for a caller that found nothing in a queue with pollBit.
//
//go:noinline
func (c *Consumer) dequeuePolled(buf []event.Event) (int, error) {
	hint := PollNow
	if c.parked.Load()&cnoBit != 0 {
		hint = PollBeforeSleep
	}
	c.poll(hint)
	if c.turn.word.Load() == c.ring.Tail()<<turnShift && c.d.async.count.Load() == 0 {
		return 0, nil
	}
	if !c.turn.acquire(turnBusy) {
		return 0, errDequeueWaiter
	}
	n := c.take(buf)
	if n < len(buf) {
		n += c.takeGap(buf[n:])
	}
	c.turn.releaseSoon(c.ring.Next())
	return n, nil
}
