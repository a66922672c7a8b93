package delivery

import (
	"sync"
	"sync/atomic"
	"time"

	"godat/hw/event"
)

// AsyncNode is an event that brings its own place: an asynchronous error that one
// object may report, for one reason, or a connection request. It is latched: a
// second report before the event was delivered adds no event. So it needs no
// reservation, and no report is lost.
type AsyncNode struct {
	// Event is what is delivered. It must not change after the node was put.
	Event event.Event
	// Drop answers a connection request for the program, unless the program has
	// taken the request from its event or answered it. The dispatcher calls Drop
	// when it closes.
	Drop func()

	next    *AsyncNode
	pending atomic.Bool
}

// asyncList has the listed events: those that wait for delivery in places of their
// own. Errors go before connection requests, and each kind is first come, first
// served.
type asyncList struct {
	count     atomic.Int32 // may be read without mu, before taking it
	mu        sync.Mutex
	errors    nodes
	requests  nodes
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
		d.putListed(&d.async.errors, node)
	}
}

// PutRequest is PutAsync for a connection request, which the dispatcher remembers
// until ForgetRequest. The service point bounds how many of its requests wait,
// because any stranger can cause them. They take no place that an endpoint could
// reserve.
func (d *Dispatcher) PutRequest(node *AsyncNode) {
	d.mu.Lock()
	if d.requests == nil {
		d.requests = make(map[*AsyncNode]struct{})
	}
	d.requests[node] = struct{}{}
	d.mu.Unlock()
	d.putListed(&d.async.requests, node)
}

// ForgetRequest removes a request that was answered. The request need not have been
// put.
func (d *Dispatcher) ForgetRequest(node *AsyncNode) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.requests, node)
}

// dropRequests calls Drop of each request that is not answered. The dispatcher
// can't tell which of their events are still in a channel, so each request knows
// whether the program took it. The dispatcher is closed.
func (d *Dispatcher) dropRequests() {
	d.mu.Lock()
	nodes := d.requests
	d.requests = nil
	d.mu.Unlock()
	for node := range nodes {
		if node.Drop != nil {
			node.Drop()
		}
	}
}

func (d *Dispatcher) putListed(to *nodes, node *AsyncNode) {
	if d.main.closed() || !node.pending.CompareAndSwap(false, true) {
		return
	}
	d.async.push(to, node)
	q := &d.main
	switch q.kind {
	case KindChannel:
		d.sendAsync()
	case KindBatch:
		q.batches.mu.Lock()
		q.batches.takeAsync()
		q.batches.mu.Unlock()
	default:
		q.notify.Store(due)
		q.Flush()
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

// pop takes the first event off the list. After that, the event's node may be put
// again.
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

// takeListed is take for when a ring was replaced, or listed events wait. It takes
// all errors, then as many requests as other events, or a flood of requests from
// strangers would keep the consumer from its completions. The caller is the
// consumer.
//
//go:noinline
func (q *Queue) takeListed(buf []event.Event) (n int) {
	l := &q.d.async
	if l.count.Load() == 0 {
		return q.ring.Take(buf)
	}
	n = l.takeFrom(&l.errors, buf)
	share := len(buf) - n
	if q.ring.Ready(1) != 0 {
		if q.requestsFirst = !q.requestsFirst; q.requestsFirst {
			share++
		}
		share /= 2
	}
	n += l.takeFrom(&l.requests, buf[n:n+share])
	n += q.ring.Take(buf[n:])
	return n + l.takeFrom(&l.requests, buf[n:])
}

// takeAsync moves as many listed events into the batch as there is room for. The
// rest follows when a batch is released. The caller holds mu.
func (b *batcher) takeAsync() {
	for b.errs < asyncRoom && b.cur != nil {
		var ev event.Event
		if !b.q.d.async.pop(&ev) {
			return
		}
		b.errs++
		b.cur.errs++
		b.add(&ev, false)
		if b.cur != nil {
			b.trySend()
		}
	}
}

// sendAsync moves listed events into the channel. A receiver does not announce that
// it made room in a channel, so if there is no room, a goroutine looks from time to
// time.
func (d *Dispatcher) sendAsync() {
	if d.trySendAsync() {
		return
	}
	d.async.mu.Lock()
	defer d.async.mu.Unlock()
	if !d.async.pumping && !d.main.closed() {
		d.async.pumping = true
		d.async.pump.Add(1)
		go d.pumpAsync()
	}
}

// trySendAsync reports whether all listed events were sent.
func (d *Dispatcher) trySendAsync() bool {
	q := &d.main
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sendHeld() // before reserveSlow, which locks mu for held events when it refuses
	var ev event.Event
	for d.async.count.Load() != 0 {
		if !q.mayList() || !q.reserveSlow(1, asyncRoom) {
			return false
		}
		if !d.async.pop(&ev) {
			q.giveBack(1)
			break
		}
		q.send(&ev)
		q.sent()
		q.listed++
		q.listedAt = q.sends()
	}
	return true
}

// mayList reports whether the channel holds fewer than asyncRoom listed events. It
// can't tell which events were received, but all listed events were received in two
// cases: the channel is empty; or, of the events sent after the last listed one, at
// least as many have left the channel as could have been on their way when that one
// was sent. The caller holds mu.
func (q *Queue) mayList() bool {
	if q.listed < asyncRoom {
		return true
	}
	sends := q.sends()
	inside := uint64(len(q.ch))
	if inside == 0 || int64(sends-inside-q.listedAt) >= inFlight {
		q.listed = 0
	}
	return q.listed == 0
}

// sends returns how many events were sent, without those that their sender has not
// counted yet.
func (q *Queue) sends() uint64 { return q.done.Load() - q.unused.Load() }

// stop waits for the pump's goroutine. The dispatcher is closed, so no pump starts
// any more after stop has had mu.
func (l *asyncList) stop() {
	l.mu.Lock()
	l.mu.Unlock() //nolint:staticcheck // who held it has started its goroutine
	l.pump.Wait()
}

// pumpInterval is how often pumpAsync looks for room.
const pumpInterval = time.Millisecond

// pumpAsync sends the listed events that found no room, until all are sent or the
// dispatcher is closed.
func (d *Dispatcher) pumpAsync() {
	defer d.async.pump.Done()
	tick := time.NewTicker(pumpInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.trySendAsync()
		case <-d.stop:
			return
		}
		d.async.mu.Lock()
		if d.async.count.Load() == 0 {
			d.async.pumping = false
			d.async.mu.Unlock()
			return
		}
		d.async.mu.Unlock()
	}
}
