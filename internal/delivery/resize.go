package delivery

import (
	"godat/hw"
	"godat/hw/event"
)

// QLen returns the length of the queue, against which posts are admitted.
func (d *Dispatcher) QLen() int { return int(d.main.limit.Load()) }

// Resize changes the length; evd.Dispatcher.Resize says when it is refused.
func (d *Dispatcher) Resize(qlen int) error {
	const op = "evd.Resize"
	switch {
	case d.main.closed():
		return invalidHandle(op)
	case qlen < 1:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "queue length %d", qlen)
	case qlen > d.resizeMax:
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceTEVD, "queue length %d, made for at most %d", qlen, d.resizeMax)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := d.main.queuedNow(); n > qlen {
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "%d events are queued", n)
	}
	if d.expected > qlen {
		return hw.Errorf(op, hw.InvalidState, hw.StateEVDWaiter, "somebody waits for %d events", d.expected)
	}
	limit := uint64(qlen)
	switch d.main.kind {
	case KindChannel:
		limit += slack
	case KindRing, KindCallback:
		d.main.ring.grow(qlen) // before the limit: see rings
	default:
	}
	d.main.limit.Store(limit)
	return nil
}

// expect records the threshold of the goroutine in Wait, so that Resize leaves room
// for that many events. It fails if Resize has shortened the queue before.
func (d *Dispatcher) expect(threshold int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if threshold > d.QLen() {
		return errThreshold
	}
	d.expected = threshold
	return nil
}

// expectNone undoes expect.
func (d *Dispatcher) expectNone() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.expected = 0
}

// queuedNow counts the events that the consumer has not taken, for messages and for
// Resize: the number may be out of date at once.
func (q *Queue) queuedNow() int {
	switch q.kind {
	case KindRing, KindCallback:
		head := q.cons.Load() >> consShift
		return int(q.ring.Tail() - head)
	case KindChannel:
		return len(q.ch) + int(q.held.Load())
	case KindBatch:
		return q.batches.queued()
	default:
		return 0
	}
}

// Streams returns the kinds of events that the dispatcher takes.
func (d *Dispatcher) Streams() event.Streams { return d.streams }
