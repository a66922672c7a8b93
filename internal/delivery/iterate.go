package delivery

import (
	"context"

	"godat/hw/event"
)

// Iterate calls yield for each event of a ring, until yield reports false, the
// context or the dispatcher ends, or the dispatcher becomes unwaitable.
func (d *Dispatcher) Iterate(ctx context.Context, yield func(event.Event) bool) {
	d.main.iterate(ctx, yield)
}

func (q *Queue) iterate(ctx context.Context, yield func(event.Event) bool) {
	for {
		ev, ok := q.nextFor(ctx)
		if !ok {
			return
		}
		if !yield(ev) {
			q.leaveBehind()
			return
		}
	}
}

// leaveBehind triggers the CNO for events that came while an iterator was there to
// take them, and that the iterator leaves in the queue.
func (q *Queue) leaveBehind() {
	if q.parked.Load()&cnoBit != 0 && (q.queuedNow() != 0 || q.d.async.count.Load() != 0) {
		q.notify.Store(due)
		q.released()
	}
}

// nextFor waits for its turn and for an event.
func (q *Queue) nextFor(ctx context.Context) (ev event.Event, ok bool) {
	for !q.acquire(consIterator) {
		if !q.awaitTurn(ctx) {
			return event.Event{}, false
		}
	}
	defer q.releaseTurn()
	if q.over() != nil || q.queued(1) == 0 && q.await(ctx, 1) != nil {
		return event.Event{}, false
	}
	if q.parked.Load() != 0 {
		q.recount()
	}
	return q.first(), true
}

// awaitTurn sleeps until the current waiter has stopped; it reports false if the
// context or the dispatcher ends before. Each side writes its own word before it
// reads the other's: awaitTurn writes turns, the waiter cons.
func (q *Queue) awaitTurn(ctx context.Context) bool {
	q.turns.Add(1)
	defer q.turns.Add(-1)
	if q.cons.Load()&consMask <= consBusy {
		return true
	}
	select {
	case <-q.turn:
		return true
	case <-ctx.Done():
	case <-q.d.stop:
	}
	return false
}

// releaseTurn is release for a consumer that waited: it also wakes one iterator
// that sleeps for its turn. Many releases may share one signal, because the
// iterator that takes it calls releaseTurn, too.
func (q *Queue) releaseTurn() {
	q.release()
	if q.turns.Load() != 0 || q.parked.Load() != 0 {
		q.released()
	}
}

// released wakes an iterator that sleeps for its turn, and triggers the CNO for
// events that producers left to the waiter.
//
//go:noinline
func (q *Queue) released() {
	if q.turns.Load() != 0 {
		select {
		case q.turn <- struct{}{}:
		default:
		}
	}
	q.wake(false)
}
