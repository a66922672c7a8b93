package delivery

import (
	"sync"
	"sync/atomic"
	"time"

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
	d     *Dispatcher  // immutable

	mu        sync.Mutex
	errors    nodes
	requests  nodes
	open      map[*AsyncNode]struct{} // requests that are not answered, delivered or not
	pumping   bool
	delivered uint64 // events popped so far
	pump      sync.WaitGroup
}

// nodes is a list in order of arrival. The mutex of the asyncList guards it.
type nodes struct{ first, last *AsyncNode }

// PutAsync reports an asynchronous error. Any goroutine may call it; it does not
// block. On a closed dispatcher it does nothing.
func (d *Dispatcher) PutAsync(node *AsyncNode) {
	if d != nil {
		d.async.put(&d.async.errors, node)
	}
}

// PutRequest is PutAsync for a connection request, which the dispatcher remembers
// until ForgetRequest. The service point bounds how many of its requests wait,
// because any stranger can cause them. They take no place that an endpoint could
// reserve.
func (d *Dispatcher) PutRequest(node *AsyncNode) {
	l := &d.async
	l.mu.Lock()
	if l.open == nil {
		l.open = make(map[*AsyncNode]struct{})
	}
	l.open[node] = struct{}{}
	l.mu.Unlock()
	l.put(&l.requests, node)
}

// ForgetRequest removes a request that was answered. The request need not have been
// put.
func (d *Dispatcher) ForgetRequest(node *AsyncNode) {
	d.async.mu.Lock()
	defer d.async.mu.Unlock()
	delete(d.async.open, node)
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

// put lists an event, unless it is listed already, and delivers what it can.
func (l *asyncList) put(to *nodes, node *AsyncNode) {
	if l.d.main.closed() || !node.pending.CompareAndSwap(false, true) {
		return
	}
	l.push(to, node)
	l.d.main.takeListed()
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

// counts returns how many listed events wait, and how many were delivered.
func (l *asyncList) counts() (waiting, delivered uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(l.count.Load()), l.delivered
}

// send moves listed events into the dispatcher's channel. A receiver does not say that it
// made room, so if there is none, a goroutine looks from time to time.
func (l *asyncList) send(c *channel) {
	if c.takeListed(l) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.pumping && !l.d.main.closed() {
		l.pumping = true
		l.pump.Add(1)
		go l.runPump(c)
	}
}

// stop waits for the pump's goroutine. The dispatcher is closed, so no pump starts
// any more after stop has had mu.
func (l *asyncList) stop() {
	l.mu.Lock()
	l.mu.Unlock() //nolint:staticcheck // a caller of send that held it has started the pump
	l.pump.Wait()
}

// pumpInterval is how often the pump looks for room.
const pumpInterval = time.Millisecond

// runPump sends the listed events that found no room, until all are sent or the
// dispatcher is closed.
func (l *asyncList) runPump(c *channel) {
	defer l.pump.Done()
	tick := time.NewTicker(pumpInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.takeListed(l)
		case <-l.d.stop:
			return
		}
		l.mu.Lock()
		if l.count.Load() == 0 {
			l.pumping = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
	}
}
