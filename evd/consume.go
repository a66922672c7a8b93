package evd

import (
	"context"
	"iter"

	"godat/hw"
)

// Errors of calls with a nil handle that may be made often.
var (
	errDequeueNil error = &hw.Error{Op: "evd.Dequeue", Type: hw.InvalidHandle, Sub: hw.Handle1}
	errWaitNil    error = &hw.Error{Op: "evd.Wait", Type: hw.InvalidHandle, Sub: hw.Handle1}
)

// Dequeue moves queued events to buf, at most len(buf) of them, and reports how
// many; 0 when there are none. It never blocks. Any number of goroutines may
// call it: each event goes to one of them. DAT: dat_evd_dequeue, whose
// QUEUE_EMPTY is 0 and nil here.
//
// On an adapter whose consumers poll, one that finds nothing polls the device once,
// delivers what that has for any dispatcher, and looks again.
//
// A loop of Dequeue that never sleeps takes a processor. Over a provider whose
// connections are sockets (iwarp) it also keeps Go's network poller waiting: the
// scheduler looks at sockets when a processor has nothing else to run, and
// [runtime.Gosched] gives it no such moment. If such loops use all of GOMAXPROCS,
// each message is found by the runtime's monitor only, up to 10 ms late. Wait, C
// and the iterators sleep, and leave the processor to the network poller.
//
// It fails with EVD_WAITER while somebody waits, and always on a dispatcher that
// delivers in another way, which is a permanent waiter.
func (d *Dispatcher) Dequeue(buf []Event) (int, error) {
	if d == nil {
		return 0, errDequeueNil
	}
	return d.inner.Dequeue(buf)
}

// Wait waits until threshold events are queued, and returns the first one and
// how many more are queued now. The others stay. It is DAT's dat_evd_wait, with
// a context for the time limit:
//
//   - the context's deadline passed: TIMEOUT_EXPIRED; one that has passed
//     already makes Wait look once;
//   - the context was canceled: INTERRUPTED_CALL;
//   - the dispatcher was aborted: ABORT;
//   - it was made unwaitable: INVALID_STATE/EVD_UNWAITABLE.
//
// Then nothing is dequeued, and the count says how many events are queued.
//
// Silent events do not end the wait early, but they count when it ends: a Wait whose
// deadline passes, or whose context is canceled, succeeds if as many events as its
// threshold are queued then, silent or not. One that begins with so many queued
// returns at once.
//
// One goroutine may wait at a time; a second one gets EVD_WAITER, and so does
// everybody on a dispatcher that delivers in another way. A threshold that is not
// within 1 and the queue's length is INVALID_PARAMETER, and so is a nil context; one above 1 is
// INVALID_STATE on a dispatcher that is fed with UNSIGNALLED or SOLICITED_WAIT.
func (d *Dispatcher) Wait(ctx context.Context, threshold int) (ev Event, nmore int, err error) {
	if d == nil {
		return Event{}, 0, errWaitNil
	}
	var one [1]Event
	nmore, err = d.inner.Wait(ctx, threshold, &one)
	return one[0], nmore, err
}

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
		switch d.mode {
		case ModeQueue:
			d.inner.Iterate(ctx, yield)
		case ModeChannel:
			iterate(ctx, d.inner.C(), yield)
		case ModeBatch:
			iterate(ctx, d.batches, func(b *Batch) bool { return b.each(yield) })
		case ModeCallback: // the callback gets them
		}
	}
}

// iterate calls yield for what comes on a channel.
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
