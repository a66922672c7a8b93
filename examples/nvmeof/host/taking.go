package host

import (
	"context"
	"runtime"

	"godat/evd"
	"godat/hw/event"
)

// takeNext waits for events of the connection, and handles them and those that are at hand behind
// them. One that polls returns when it has looked. The error says that ctx has ended.
func (l *link) takeNext(ctx context.Context) error {
	if l.in.Spins() {
		return l.poll(ctx)
	}
	l.waiter.Linger()
	over := ctx.Done()
	if l.in.Waiting() != 0 {
		over = nil
	}
	if over == nil && l.in.Batches != nil {
		l.handleAll(<-l.in.Batches) // without a select, which takes longer
		return nil
	}
	select {
	case batch := <-l.in.Batches:
		l.handleAll(batch)
	case ev := <-l.in.Events:
		l.handleEach(ev)
	case <-over:
		return context.Cause(ctx)
	}
	return nil
}

// poll handles the events that have come.
func (l *link) poll(ctx context.Context) error {
	if len(l.in.Batches) != 0 {
		l.handleAll(<-l.in.Batches)
		return nil
	}
	events, err := l.in.Dequeue()
	switch {
	case err != nil: // the connection is closed
		l.err, l.over = err, true
	case len(events) > 0:
		l.handleEvents(events)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		runtime.Gosched()
	}
	return nil
}

// handleAll handles the events of a batch, and of those that are at hand behind it. It
// reports whether the connection has ended.
func (l *link) handleAll(batch *evd.Batch) (ended bool) {
	for n := len(l.in.Batches); !l.handleBatch(batch); n-- {
		if n == 0 {
			return false
		}
		batch = <-l.in.Batches
	}
	return true
}

// handleEach is handleAll for events that come one at a time.
func (l *link) handleEach(ev event.Event) (ended bool) {
	for n := len(l.in.Events); !l.handle(&ev); n-- {
		if n == 0 {
			return false
		}
		ev = <-l.in.Events
	}
	return true
}

// handleBatch handles the events of a batch.
func (l *link) handleBatch(batch *evd.Batch) (ended bool) {
	defer batch.Release()
	return l.handleEvents(batch.Events())
}

func (l *link) handleEvents(events []event.Event) (ended bool) {
	for i := range events {
		if l.handle(&events[i]) {
			return true
		}
	}
	return false
}
