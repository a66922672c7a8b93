package delivery

import (
	"sync"
	"sync/atomic"

	"godat/hw/event"
)

// AsyncNode is an event that brings its own place: an asynchronous error that one object may
// report, for one reason, or a connection request. A second report before the event was
// delivered adds no event. So it needs no reservation, and no report is lost.
type AsyncNode struct {
	// Event is what is delivered. It must not change after the node was put.
	Event event.Event
	// Drop answers a connection request for the program, unless the program has taken the
	// request from its event or answered it. A dispatcher that closes calls it.
	Drop func()

	next    *AsyncNode
	pending atomic.Bool
}

// asyncList has the listed events: those that wait for delivery in places of their own.
// Errors go before connection requests, and each kind is first come, first served.
type asyncList struct {
	count atomic.Int32 // may be read without mu, before taking it

	mu        sync.Mutex
	errors    nodes
	requests  nodes
	open      map[*AsyncNode]struct{} // requests that are not answered, delivered or not
	delivered uint64                  // events popped so far
}

// nodes is a list in order of arrival. The mutex of the asyncList guards it.
type nodes struct{ first, last *AsyncNode }

// remember keeps a request until it is answered.
func (l *asyncList) remember(node *AsyncNode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = make(map[*AsyncNode]struct{})
	}
	l.open[node] = struct{}{}
}

// forget is for a request that was answered.
func (l *asyncList) forget(node *AsyncNode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, node)
}

// dropRequests calls Drop of each request that is not answered. A closed dispatcher can't
// tell which of their events are still in a channel, so each request knows whether the
// program took it.
func (l *asyncList) dropRequests() {
	l.mu.Lock()
	nodes := l.open
	l.open = nil
	l.mu.Unlock()
	for node := range nodes {
		if node.Drop != nil {
			node.Drop()
		}
	}
}

func (l *asyncList) push(to *nodes, node *AsyncNode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	node.next = nil
	if to.last == nil {
		to.first = node
	} else {
		to.last.next = node
	}
	to.last = node
	l.count.Add(1)
}

// pop takes the first event off the list. Its node may be put again then.
func (l *asyncList) pop(ev *event.Event) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.popFrom(&l.errors, ev) || l.popFrom(&l.requests, ev)
}

// popFrom is pop for one kind. The caller holds mu.
func (l *asyncList) popFrom(from *nodes, ev *event.Event) bool {
	node := from.first
	if node == nil {
		return false
	}
	from.first = node.next
	if from.first == nil {
		from.last = nil
	}
	*ev = node.Event
	l.count.Add(-1)
	l.delivered++
	node.pending.Store(false)
	return true
}

// takeFrom moves events of one kind to buf.
func (l *asyncList) takeFrom(from *nodes, buf []event.Event) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n < len(buf) && l.popFrom(from, &buf[n]) {
		n++
	}
	return n
}

// takeBeside moves events to buf, the listed ones and the ring's. It takes
// all errors, then as many requests as other events, or a flood of requests from
// strangers would keep the consumer from its completions. The ring's consumer calls it, and
// keeps in requestsFirst whose turn it is.
func (l *asyncList) takeBeside(ring *rings, requestsFirst *bool, buf []event.Event) (n int) {
	if l.count.Load() == 0 {
		return ring.Take(buf)
	}
	n = l.takeFrom(&l.errors, buf)
	share := len(buf) - n
	if ring.Ready(1) != 0 {
		if *requestsFirst = !*requestsFirst; *requestsFirst {
			share++
		}
		share /= 2
	}
	n += l.takeFrom(&l.requests, buf[n:n+share])
	n += ring.Take(buf[n:])
	return n + l.takeFrom(&l.requests, buf[n:])
}

// counts returns how many listed events wait, and how many were delivered.
func (l *asyncList) counts() (waiting, delivered uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(l.count.Load()), l.delivered
}
