package evd

import (
	"context"
	"iter"
)

// Events iterates over the events, in every mode but ModeCallback, until the
// context or the dispatcher ends, or in ModeQueue the dispatcher becomes
// unwaitable. Any number of goroutines may iterate: each
// event goes to one of them. Between two events others may dequeue; while an
// iterator sleeps, they get EVD_WAITER.
//
// In batch mode the batch at hand is released when the loop is left, and what is
// left of it is lost.
func (d *Dispatcher) Events(ctx context.Context) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		if d == nil || ctx == nil {
			return
		}
		switch d.main.kind {
		case kindRing:
			d.main.iterate(ctx, yield)
		case kindChannel:
			iterateChannel(ctx, d.main.ch, yield)
		case kindBatch:
			d.main.batches.iterate(ctx, yield)
		default: // the callback gets them
		}
	}
}

func (q *Queue) iterate(ctx context.Context, yield func(Event) bool) {
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

// leaveBehind tells the CNO of events that came while an iterator was there to take
// them, and that it leaves.
func (q *Queue) leaveBehind() {
	if q.parked.Load()&cnoBit != 0 && (q.queuedNow() != 0 || q.d.async.count.Load() != 0) {
		q.notify.Store(due)
		q.released()
	}
}

// nextFor waits for its turn and for an event.
func (q *Queue) nextFor(ctx context.Context) (ev Event, ok bool) {
	for !q.acquire(consIterator) {
		if !q.awaitTurn(ctx) {
			return Event{}, false
		}
	}
	defer q.releaseTurn()
	if q.over() != nil || q.queued(1) == 0 && q.await(ctx, 1) != nil {
		return Event{}, false
	}
	if q.parked.Load() != 0 {
		q.recount()
	}
	return q.first(), true
}

// awaitTurn sleeps until whoever waits has stopped. As everywhere, each side
// writes its own word before it reads the other's: turns here, cons there.
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

// releaseTurn is release for who waited: one iterator that sleeps for its turn
// is woken. Many releases may share one signal: whoever takes it releases, too.
func (q *Queue) releaseTurn() {
	q.release()
	if q.turns.Load() != 0 || q.parked.Load() != 0 {
		q.released()
	}
}

// released tells an iterator, and the CNO of what it left to the waiter.
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

func iterateChannel(ctx context.Context, ch <-chan Event, yield func(Event) bool) {
	for {
		select {
		case ev, ok := <-ch:
			if !ok || !yield(ev) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (b *batcher) iterate(ctx context.Context, yield func(Event) bool) {
	for {
		select {
		case batch, ok := <-b.ch:
			if !ok || !batch.each(yield) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (b *Batch) each(yield func(Event) bool) bool {
	defer b.Release()
	for _, ev := range b.evs {
		if !yield(ev) {
			return false
		}
	}
	return true
}
