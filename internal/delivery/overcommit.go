package delivery

import (
	"sync/atomic"

	"godat/hw/event"
)

// An over-committed dispatcher is DAT's own kind: it accepts posts whether or not
// there will be room for their events, and loses an event that finds no room, which
// is an asynchronous error. Posts reserve in a queue in front of the main queue,
// which always has room. A place in the main queue is reserved when the event
// comes.
//
// Software events, for which DAT has an answer when there is no room (QUEUE_FULL),
// reserve in the main queue itself, as in other dispatchers.

// overcommitted is delivery into another queue as long as that one has room.
type overcommitted struct {
	q, main *Queue
	lost    *atomic.Uint64
	to      *Dispatcher // hears of lost events; nil: nobody does
	node    AsyncNode
}

// boundless is a limit that no number of reservations reaches.
const boundless = 1 << 62

// Overcommit puts the boundless queue in front of the main queue. async gets the overflow
// errors; nil drops them. The dispatcher's maker calls it before the first post.
func (d *Dispatcher) Overcommit(async *Dispatcher) {
	d.front = &Queue{d: d}
	d.front.places.limit.Store(boundless)
	d.front.SinkTo(&overcommitted{
		q: d.front, main: &d.main, lost: &d.lost, to: async,
		node: AsyncNode{Event: event.Event{Number: event.AsyncEVDOverflow, Source: d.public, Data: event.EVDOverflow}},
	})
	d.routes.keepEmpty = true
	d.routes.list.Store(new([]*Route)) // so that For calls Main
}

// Put moves the events for which there is room into the main queue.
func (o *overcommitted) Put(evs []event.Event) {
	for i := range evs {
		switch {
		case o.main.Reserve(1):
			o.main.Put(&evs[i])
		case !o.main.closed():
			o.lost.Add(1)
			o.to.PutAsync(&o.node)
		}
		o.q.Done(1)
	}
}

// Flush flushes the main queue.
func (o *overcommitted) Flush(all bool) {
	if all {
		o.main.expose()
	} else {
		o.main.Flush()
	}
}

// Free gives back places.
func (o *overcommitted) Free(n int) { o.q.Done(n) }

// Counts counts also the places that had no event, which is what a close wants to know.
func (o *overcommitted) Counts() (came uint64, listed int) { return o.q.places.done.Load(), 0 }
