package delivery

import (
	"sync"

	"godat/hw"
)

// length bounds the length of a dispatcher's queue.
type length struct {
	max int // the greatest length that Resize accepts; immutable

	mu       sync.Mutex
	expected int // the threshold of the goroutine in Wait, if more than one
}

// QLen returns the length of the queue, against which posts are admitted.
func (d *Dispatcher) QLen() int { return int(d.main.places.limit.Load()) }

// Resize changes the length; evd.Dispatcher.Resize says when it is refused.
func (d *Dispatcher) Resize(qlen int) error {
	const op = "evd.Resize"
	q, l := &d.main, &d.length
	switch {
	case q.closed():
		return InvalidHandle(op)
	case qlen < 1:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "queue length %d", qlen)
	case qlen > l.max:
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceTEVD, "queue length %d, made for at most %d", qlen, l.max)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := q.queued(); n > qlen {
		return hw.Errorf(op, hw.InvalidState, hw.NoSubtype, "%d events are queued", n)
	}
	if l.expected > qlen {
		return hw.Errorf(op, hw.InvalidState, hw.StateEVDWaiter, "a goroutine waits for %d events", l.expected)
	}
	limit := uint64(qlen)
	switch q.form {
	case toChannel:
		limit += uint64(q.channel.sizes.slack())
	case toRing:
		q.consumer.ring.grow(qlen) // before the limit: see rings
	case toSink:
		if g, ok := q.sink.(grower); ok {
			g.Grow(qlen)
		}
	}
	q.places.limit.Store(limit)
	return nil
}

// expect records the threshold of the goroutine in Wait, so that Resize leaves room
// for that many events; 0 when the Wait is over. It fails if Resize has shortened the queue
// before.
func (d *Dispatcher) expect(threshold int) error {
	l := &d.length
	l.mu.Lock()
	defer l.mu.Unlock()
	if threshold > d.QLen() {
		return errThreshold
	}
	l.expected = threshold
	return nil
}
