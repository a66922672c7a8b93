package evd

import (
	"sync"
	"sync/atomic"
	"time"
)

// AsyncNode is an asynchronous error that one object may report, for one
// reason. It is latched: reported again before its event was delivered, it stays
// one event. So it needs no place, and none can be lost.
type AsyncNode struct {
	// Event is what is delivered. It does not change once the node was put.
	Event Event

	next    *AsyncNode
	pending atomic.Bool
}

// asyncList is the errors that wait for delivery, first come first.
type asyncList struct {
	count       atomic.Int32 // may be read without mu, before taking it
	mu          sync.Mutex
	first, last *AsyncNode
	pumping     bool
	delivered   uint64 // taken off, ever
	pump        sync.WaitGroup
}

// PutAsync reports an asynchronous error. Any goroutine may call it; it does not
// block. On a closed dispatcher it does nothing.
func (d *Dispatcher) PutAsync(node *AsyncNode) {
	if d == nil || d.main.closed() || !node.pending.CompareAndSwap(false, true) {
		return
	}
	d.async.push(node)
	q := &d.main
	switch q.kind {
	case kindChannel:
		d.sendAsync()
	case kindBatch:
		q.batches.mu.Lock()
		q.batches.takeAsync()
		q.batches.mu.Unlock()
	default:
		q.notify.Store(due)
		q.Flush()
	}
}

func (l *asyncList) push(node *AsyncNode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	node.next = nil
	if l.last == nil {
		l.first = node
	} else {
		l.last.next = node
	}
	l.last = node
	l.count.Add(1)
}

// pop takes the first error off the list, which may be reported again.
func (l *asyncList) pop(ev *Event) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	node := l.first
	if node == nil {
		return false
	}
	l.first = node.next
	if l.first == nil {
		l.last = nil
	}
	*ev = node.Event
	l.count.Add(-1)
	l.delivered++
	node.pending.Store(false)
	return true
}

func (l *asyncList) take(buf []Event) int {
	n := 0
	for n < len(buf) && l.pop(&buf[n]) {
		n++
	}
	return n
}

// takeAsync moves errors into the batch, as many as there is room for. The rest
// follows when a batch is released. Its caller holds mu.
func (b *batcher) takeAsync() {
	for b.errs < asyncRoom && b.cur != nil {
		var ev Event
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

// sendAsync moves errors into the channel. Nobody tells when a channel gets room
// again: if there is none, a goroutine looks from time to time.
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

// trySendAsync reports whether all errors were sent.
func (d *Dispatcher) trySendAsync() bool {
	q := &d.main
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sendHeld() // also because a refusal does so, and needs mu
	var ev Event
	for d.async.count.Load() != 0 {
		if !q.reserveSlow(1, asyncRoom) {
			return false
		}
		if !d.async.pop(&ev) {
			q.giveBack(1)
			break
		}
		q.send(&ev)
		q.sent()
	}
	return true
}

// stop waits for the goroutine. The dispatcher is closed, so none begins any
// more once mu was free.
func (l *asyncList) stop() {
	l.mu.Lock()
	l.mu.Unlock() //nolint:staticcheck // who held it has started its goroutine
	l.pump.Wait()
}

// pumpInterval is how often pumpAsync looks for room.
const pumpInterval = time.Millisecond

// pumpAsync sends the errors that found a full channel.
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
		if d.async.first == nil {
			d.async.pumping = false
			d.async.mu.Unlock()
			return
		}
		d.async.mu.Unlock()
	}
}
