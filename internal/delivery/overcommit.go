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

// overflow is how an over-committed dispatcher reports lost events.
type overflow struct {
	to   *Dispatcher
	node AsyncNode
	lost atomic.Uint64
}

// boundless is a limit that no number of reservations reaches.
const boundless = 1 << 62

// overcommit puts the boundless queue in front of the main queue.
func (d *Dispatcher) overcommit(async *Dispatcher) {
	d.front = &Queue{kind: kindOvercommitted, d: d}
	d.front.places.limit.Store(boundless)
	d.routes.keepEmpty = true
	d.routes.list.Store(new([]*Route)) // so that For calls Main
	d.overflow.to = async
	d.overflow.node.Event = event.Event{Number: event.AsyncEVDOverflow, Source: d.public, Data: event.EVDOverflow}
}

// putOver is Put into the queue in front.
func (q *Queue) putOver(ev *event.Event) {
	main := &q.d.main
	switch {
	case main.Reserve(1):
		main.Put(ev)
	case !main.closed():
		q.d.overflow.lost.Add(1)
		q.d.overflow.to.PutAsync(&q.d.overflow.node)
	}
	q.giveBack(1)
}

// Main returns the queue of all events that no route takes.
func (d *Dispatcher) Main() *Queue {
	if d.front != nil {
		return d.front
	}
	return &d.main
}
