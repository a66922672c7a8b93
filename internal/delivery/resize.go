package delivery

import (
	"sync"

	"godat/hw"
)

// length is the length of a dispatcher's queue, and what Resize must not shorten it
// below.
type length struct {
	// Immutable.
	d   *Dispatcher
	max int // the greatest length that Resize accepts

	mu       sync.Mutex
	expected int // the threshold of the goroutine in Wait, if more than one
}

// QLen returns the length of the queue, against which posts are admitted.
func (d *Dispatcher) QLen() int { return int(d.main.places.limit.Load()) }

// Resize changes the length; evd.Dispatcher.Resize says when it is refused.
func (d *Dispatcher) Resize(qlen int) error {
	const op = "evd.Resize"
	switch {
	case d.main.closed():
		return invalidHandle(op)
	case qlen < 1:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "queue length %d", qlen)
	case qlen > d.length.max:
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceTEVD, "queue length %d, made for at most %d", qlen, d.length.max)
	}
	return d.length.change(op, qlen)
}

func (l *length) change(op string, qlen int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := &l.d.main
	if n := q.queued(); n > qlen {
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "%d events are queued", n)
	}
	if l.expected > qlen {
		return hw.Errorf(op, hw.InvalidState, hw.StateEVDWaiter, "a goroutine waits for %d events", l.expected)
	}
	limit := uint64(qlen)
	switch q.kind {
	case KindChannel:
		limit += uint64(q.channel.sizes.slack())
	case KindRing, KindCallback:
		q.consumer.ring.grow(qlen) // before the limit: see rings
	default:
	}
	q.places.limit.Store(limit)
	return nil
}

// expect records the threshold of the goroutine in Wait, so that Resize leaves room
// for that many events. It fails if Resize has shortened the queue before.
func (l *length) expect(threshold int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if threshold > l.d.QLen() {
		return errThreshold
	}
	l.expected = threshold
	return nil
}

// expectNone undoes expect.
func (l *length) expectNone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expected = 0
}
