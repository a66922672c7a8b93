package evd

import (
	"context"
	"iter"

	"godat/hw/event"
)

// errDequeueNil is made once, because a program may call Dequeue often.
var errDequeueNil = invalidHandle("evd.Dequeue")

// Dequeue moves at most len(buf) queued events to buf and returns how many; 0 when
// none are queued. It never blocks. Any number of goroutines may call it: each
// event goes to one of them. Posts that happen after the Dequeue, in the sense of
// Go's memory model, find the places of these events free. DAT: dat_evd_dequeue,
// whose QUEUE_EMPTY is 0 and nil here.
//
// On an adapter whose consumers poll, a Dequeue that finds no event polls the
// device once, delivers the completions that it finds there to their dispatchers,
// and looks into the queue again.
//
// Over a provider whose connections are sockets (iwarp), on Linux, a Dequeue that
// finds no event reads the adapter's sockets, processes what has come, and looks into
// the queue again. From time to time it makes Go's scheduler poll the network, which
// takes a microsecond; other goroutines may run meanwhile. Without that a loop of
// Dequeue would starve the program's other sockets: the scheduler polls them when a
// processor has nothing to run, and [runtime.Gosched] gives it no such moment. On
// other systems only the runtime's monitor finds what comes, up to 10 ms late, if such
// loops use all processors. A loop of Dequeue occupies a processor in any case. Wait,
// C and the iterators sleep.
//
// It fails with EVD_WAITER while a goroutine is in Wait, and always in the other
// modes, whose delivery is a permanent waiter.
func (d *Dispatcher) Dequeue(buf []event.Event) (int, error) {
	if d == nil {
		return 0, errDequeueNil
	}
	return d.inner.Dequeue(buf)
}

// Wait waits until threshold events are queued, and returns the first one and how
// many more are queued now. The others stay queued. It is DAT's dat_evd_wait, with
// a context for the time limit. It fails with
//
//   - TIMEOUT_EXPIRED if the context's deadline passed; if it had passed already,
//     Wait looks once;
//   - INTERRUPTED_CALL if the context was canceled;
//   - ABORT if the dispatcher was aborted;
//   - INVALID_STATE/EVD_UNWAITABLE if the dispatcher was made unwaitable.
//
// In these cases nothing is dequeued, and nmore says how many events are queued.
//
// Silent events do not end the wait early, but they count when it ends: a Wait
// whose deadline passes, or whose context is canceled, succeeds if as many events
// as its threshold are queued then, silent or not. A Wait that finds so many queued
// when it begins returns at once.
//
// One goroutine may wait at a time; a second one gets EVD_WAITER, and so does every
// caller in the other modes. A threshold that is not within 1 and the queue's
// length is INVALID_PARAMETER, and so is a nil context when too few events are
// queued. A threshold above 1 is INVALID_STATE on a dispatcher that is fed with
// UNSIGNALLED or SOLICITED_WAIT.
func (d *Dispatcher) Wait(ctx context.Context, threshold int) (ev event.Event, nmore int, err error) {
	if d == nil {
		return event.Event{}, 0, invalidHandle("evd.Wait")
	}
	var one [1]event.Event
	nmore, err = d.inner.Consumer().Wait(ctx, threshold, &one)
	return one[0], nmore, err
}

// Events iterates over the events, in the modes but ModeCallback and ModeFunc, until the
// context or the dispatcher ends; in ModeQueue also until the dispatcher becomes
// unwaitable. Any number of goroutines may iterate: each event goes to one of them.
// Between two events other goroutines may dequeue; while an iterator sleeps, they
// get EVD_WAITER.
//
// In ModeBatch a loop that is left releases the current batch, and loses the events
// of that batch that it has not seen.
func (d *Dispatcher) Events(ctx context.Context) iter.Seq[event.Event] {
	return func(yield func(event.Event) bool) {
		if d == nil || ctx == nil {
			return
		}
		switch d.mode {
		case ModeQueue:
			d.inner.Consumer().Iterate(ctx, yield)
		case ModeChannel:
			iterate(ctx, d.inner.C(), yield)
		case ModeBatch:
			iterate(ctx, d.batches, func(b *Batch) bool { return b.each(yield) })
		default: // a function of the program's gets them
		}
	}
}

// iterate calls yield for each value received from ch.
func iterate[T any](ctx context.Context, ch <-chan T, yield func(T) bool) {
	for {
		select {
		case v, ok := <-ch:
			if !ok || !yield(v) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
