package delivery

import (
	"sync/atomic"

	"godat/hw/event"
)

// An over-committed dispatcher is DAT's own: posts are taken whether or not there
// will be room for their events, and an event that finds none is lost, which is an
// asynchronous error. Its reservations go to a queue that always has room, in
// front of the main queue, and there a place is reserved when the event comes.
//
// Software events, for which DAT has an answer when there is no room (QUEUE_FULL),
// reserve in the main queue itself, as ever.

// overflow is how an over-committed dispatcher reports.
type overflow struct {
	to   *Dispatcher
	node AsyncNode
	lost atomic.Uint64
}

// boundless is a limit that no number of reservations reaches.
const boundless = 1 << 62

// overcommit puts the boundless queue in front.
func (d *Dispatcher) overcommit(async *Dispatcher) {
	d.front = &Queue{kind: kindOvercommitted, d: d}
	d.front.limit.Store(boundless)
	d.routes.Store(new([]*Route)) // so that For asks Main
	d.overflow.to = async
	d.overflow.node.Event = event.Event{Number: event.AsyncEVDOverflow, Source: d.public, Data: event.EVDOverflow}
}

// putOver is Put into the queue in front.
func (q *Queue) putOver(ev *event.Event, silent bool) {
	main := &q.d.main
	switch {
	case main.Reserve(1):
		main.Put(ev, silent)
	case !main.closed():
		q.d.overflow.lost.Add(1)
		q.d.overflow.to.PutAsync(&q.d.overflow.node)
	}
	q.giveBack(1)
}

// Main is the queue of all events that no route takes.
func (d *Dispatcher) Main() *Queue {
	if d.front != nil {
		return d.front
	}
	return &d.main
}
