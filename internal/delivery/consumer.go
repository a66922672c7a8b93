package delivery

import (
	"context"
	"errors"
	"math"
	"runtime"

	"godat/hw/event"

	"godat/hw"
	"godat/internal/yield"
)

// A ring has one consumer at a time. The low bits of cons say which kind it is, and
// the other bits count the events taken, so that one store both frees the places
// and lets the next consumer in.
const (
	consFree     = 0
	consBusy     = 1 // a Dequeue or SetNotifier, soon over
	consWaiter   = 2 // a Wait
	consIterator = 3 // an iterator that waits
	consMask     = 3
	consShift    = 2
)

// The values of notify. A silent event must not wake the waiter, unless it fills
// the gap in front of an event that should have: a producer first claims a place
// and then publishes the event, so a later event may be published first. A waiter
// that finds a gap before it sleeps sets gapped, and then silent events notify as
// well.
const (
	quiet  = 0 // nothing that notifies was put since the waiter looked
	gapped = 1 // the same, and the next event of any kind notifies
	due    = 2
)

// spins is how often a waiter looks and yields before it sleeps.
const spins = 20

// mark sets notify for an event that was put, for Flush to see.
func (q *Queue) mark(silent bool) {
	s := q.notify.Load()
	if s != due && (!silent || s == gapped) {
		q.notify.Store(due)
	}
}

// acquire makes the caller the consumer. It waits for a Dequeue to finish, and
// reports false while a goroutine waits.
func (q *Queue) acquire(as uint64) bool {
	for {
		w := q.cons.Load()
		switch w & consMask {
		case consFree:
			if q.cons.CompareAndSwap(w, w|as) {
				return true
			}
		case consBusy:
			runtime.Gosched()
		default:
			return false
		}
	}
}

// release frees the places of the events that the consumer took, and lets other
// consumers in.
func (q *Queue) release() { q.cons.Store(q.ring.Next() << consShift) }

// take moves queued events to buf, the listed ones and the ring's. The caller is
// the consumer.
func (q *Queue) take(buf []event.Event) int {
	s := q.ring.newest.Load()
	if s.older != nil || q.d.async.count.Load() != 0 {
		return q.takeListed(buf)
	}
	return s.r.Take(buf) // here, to save a call
}

// all is a limit for queued that no queue reaches.
const all = math.MaxInt

// queued counts the events that take would find, up to at least limit. The caller
// is the consumer.
func (q *Queue) queued(limit int) int {
	return int(q.d.async.count.Load()) + int(q.ring.Ready(uint64(limit)))
}

// wake wakes the waiter if it sleeps: with force in any case, else if an event
// notifies and the claimed events reach the waiter's threshold, or a listed event
// waits. Of several callers, the one that wins the swap sends the token. If no
// waiter sleeps, wake triggers the CNO.
func (q *Queue) wake(force bool) {
	for {
		p := q.parked.Load()
		t := p &^ flagBits
		if t == 0 {
			if p&cnoBit != 0 {
				q.tellCNO()
			}
			return
		}
		if !force {
			if q.notify.Load() != due {
				return
			}
			claimed := q.ring.Tail() - q.cons.Load()>>consShift
			if claimed < uint64(t) && q.d.async.count.Load() == 0 {
				return
			}
		}
		yield.Point()
		if q.parked.CompareAndSwap(p, p&flagBits) {
			q.token <- struct{}{}
			return
		}
	}
}

// await returns nil when threshold events are queued, and otherwise what ended the
// wait. The caller is the consumer and has found too few events.
func (q *Queue) await(ctx context.Context, threshold int) error {
	if ctx == nil {
		return ErrNoContext
	}
	if threshold > 1 {
		if err := q.d.expect(threshold); err != nil {
			return err
		}
		defer q.d.expectNone()
	}
	if q.parked.Load()&pollBit != 0 {
		q.pollDevice(PollBeforeSleep)
		if q.queued(threshold) >= threshold {
			return nil
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if q.recount() >= threshold {
		return nil
	}
	for range q.spins {
		runtime.Gosched()
		if q.came(threshold) {
			return nil
		}
		if q.closed() {
			return errAborted
		}
	}
	for {
		if q.park(threshold) || q.over() != nil {
			q.unpark()
		} else {
			q.d.sleeps.Add(1)
			select {
			case <-q.token:
			case <-ctx.Done():
				q.unpark()
				if q.queued(threshold) < threshold {
					return ctx.Err()
				}
			}
		}
		if q.queued(threshold) >= threshold {
			return nil
		}
		if err := q.over(); err != nil {
			return err
		}
	}
}

// over returns what ends every wait, however many events are queued; nil as long as
// nothing does.
func (q *Queue) over() error {
	switch {
	case q.closed():
		return errAborted
	case q.parked.Load()&unwaitableBit != 0:
		return errUnwaitable
	}
	return nil
}

// came reports whether the wait is over: an event notified, and enough are queued.
func (q *Queue) came(threshold int) bool {
	return q.notify.Load() == due && q.queued(threshold) >= threshold
}

// park announces that the waiter is about to sleep. Then it looks once more,
// because a producer that put an event before that did not see the announcement.
func (q *Queue) park(threshold int) bool {
	q.parked.Or(uint32(threshold))
	yield.Point()
	return q.came(threshold)
}

// unpark undoes park. If a producer has decided to wake the waiter, its token is on
// its way, and unpark takes it.
func (q *Queue) unpark() {
	if q.parked.And(flagBits)&^flagBits == 0 {
		<-q.token
	}
}

// Dequeue moves queued events to buf; see evd.Dispatcher.Dequeue.
func (d *Dispatcher) Dequeue(buf []event.Event) (int, error) {
	if d.main.closed() {
		return 0, errDequeueClosed
	}
	q := &d.main
	if q.kind != KindRing {
		return 0, errDequeueWaiter
	}
	w := q.cons.Load()
	if w == q.ring.Tail()<<consShift && d.async.count.Load() == 0 {
		if q.parked.Load()&pollBit != 0 {
			return d.dequeuePolled(buf)
		}
		return 0, nil
	}
	if w&consMask != consFree || !q.cons.CompareAndSwap(w, w|consBusy) {
		if !q.acquire(consBusy) {
			return 0, errDequeueWaiter
		}
	}
	n := q.take(buf)
	if n < len(buf) && q.parked.Load() != 0 {
		n += q.takeGap(buf[n:])
	}
	q.release()
	return n, nil
}

// Wait waits until threshold events are queued, and moves the first one to ev; see
// evd.Dispatcher.Wait.
func (d *Dispatcher) Wait(ctx context.Context, threshold int, ev *[1]event.Event) (nmore int, err error) {
	if threshold != 1 || d.main.kind != KindRing || d.main.closed() {
		if err := d.mayWait(threshold); err != nil {
			return 0, err
		}
	}
	q := &d.main
	if w := q.cons.Load(); w&consMask != consFree || !q.cons.CompareAndSwap(w, w|consWaiter) {
		if !q.acquire(consWaiter) {
			return 0, errWaitWaiter
		}
	}
	nmore = q.queued(all)
	if nmore < threshold {
		err = q.await(ctx, threshold)
		nmore = q.queued(all)
	}
	if p := q.parked.Load(); p != 0 {
		nmore = q.recount()
		if p&unwaitableBit != 0 {
			err = errUnwaitable
		}
	}
	if err == nil {
		q.take(ev[:]) // there is one
		nmore--
	} else {
		err = waitError("evd.Wait", err)
	}
	q.releaseTurn()
	return nmore, err
}

// first takes the first event. The caller is the consumer, and knows that there is
// one.
func (q *Queue) first() event.Event {
	var one [1]event.Event
	q.take(one[:])
	return one[0]
}

// mayWait returns why a Wait is refused; nil if it is not.
func (d *Dispatcher) mayWait(threshold int) error {
	switch {
	case d.main.closed():
		return &hw.Error{Op: "evd.Wait", Type: hw.InvalidHandle, Sub: hw.Handle1}
	case d.main.kind != KindRing:
		return errWaitWaiter
	case threshold < 1 || uint64(threshold) > d.main.limit.Load():
		return hw.Errorf("evd.Wait", hw.InvalidParameter, hw.Arg3, "threshold %d, queue length %d", threshold, d.main.limit.Load())
	case threshold > 1:
		return d.mayThreshold()
	}
	return nil
}

// waitError returns the error of op for a wait that ended with err.
func waitError(op string, err error) error {
	t := hw.InterruptedCall
	switch {
	case err == errUnwaitable:
		return &hw.Error{Op: op, Type: hw.InvalidState, Sub: hw.StateEVDUnwaitable}
	case err == ErrNoContext:
		return &hw.Error{Op: op, Type: hw.InvalidParameter, Sub: hw.Arg2, Err: err}
	case err == errThreshold:
		return &hw.Error{Op: op, Type: hw.InvalidParameter, Sub: hw.Arg3, Err: err}
	case err == errAborted:
		t = hw.Abort
	case errors.Is(err, context.DeadlineExceeded):
		t = hw.TimeoutExpired
	}
	return &hw.Error{Op: op, Type: t, Err: err}
}
