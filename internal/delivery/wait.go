package delivery

import (
	"context"
	"errors"
	"runtime"

	"godat/hw"
	"godat/hw/event"
	"godat/internal/yield"
)

// Wait waits until threshold events are queued, and moves the first one to ev; see
// evd.Dispatcher.Wait.
func (c *Consumer) Wait(ctx context.Context, threshold int, ev *[1]event.Event) (nmore int, err error) {
	if q := &c.d.main; threshold != 1 || q.form != toRing || q.closed() {
		if err := c.mayWait(threshold); err != nil {
			return 0, err
		}
	}
	if !c.turn.tryAcquire(c.turn.word.Load(), turnBusy) && !c.turn.acquire(turnBusy) {
		return 0, errWaitWaiter
	}
	nmore = c.ready(all)
	if nmore >= threshold && c.parked.Load()&^pollBit == 0 { // it leaves as a Dequeue does, since it did not wait
		c.take(ev[:])
		c.turn.releaseSoon(c.ring.Next())
		return nmore - 1, nil
	}
	c.turn.stay()
	if nmore < threshold {
		err = c.await(ctx, threshold, c.barred.Load())
		nmore = c.ready(all)
	}
	if p := c.parked.Load(); p != 0 {
		nmore = c.recount()
		if p&unwaitableBit != 0 {
			err = errUnwaitable
		}
	}
	if err == nil {
		c.take(ev[:]) // there is one
		nmore--
	} else {
		err = waitError("evd.Wait", err)
	}
	c.releaseTurn()
	return nmore, err
}

// mayWait returns why a Wait is refused; nil if it is not.
func (c *Consumer) mayWait(threshold int) error {
	const op = "evd.Wait"
	q := &c.d.main
	limit := q.places.limit.Load()
	switch {
	case q.closed():
		return InvalidHandle(op)
	case q.form != toRing:
		return errWaitWaiter
	case threshold < 1 || uint64(threshold) > limit:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg3, "threshold %d, queue length %d", threshold, limit)
	case threshold > 1:
		return c.d.feeds.mayThreshold()
	}
	return nil
}

// await returns nil when threshold events are queued, and otherwise what ended the
// wait. The consumer has found too few events. since is what barred was when it came.
func (c *Consumer) await(ctx context.Context, threshold int, since uint32) error {
	c.turn.own.Check()
	if ctx == nil {
		return ErrNoContext
	}
	if threshold > 1 {
		if err := c.d.expect(threshold); err != nil {
			return err
		}
		defer func() { _ = c.d.expect(0) }()
	}
	if c.parked.Load()&pollBit != 0 {
		c.poll(PollBeforeSleep)
		if c.ready(threshold) >= threshold {
			return nil
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.recount() >= threshold {
		return nil
	}
	for range c.spins {
		runtime.Gosched()
		if c.parked.Load()&pollBit != 0 {
			c.poll(PollAgain)
		}
		if c.came(threshold) {
			return nil
		}
		if c.d.main.closed() {
			return errAborted
		}
	}
	return c.sleep(ctx, threshold, since)
}

// sleep is the part of await that sleeps.
func (c *Consumer) sleep(ctx context.Context, threshold int, since uint32) error {
	for {
		if c.park(threshold) || c.over(since) != nil {
			c.unpark()
		} else {
			c.sleeps.Add(1)
			select {
			case <-c.token:
			case <-ctx.Done():
				c.unpark()
				if c.ready(threshold) < threshold {
					return ctx.Err()
				}
			}
		}
		if c.ready(threshold) >= threshold {
			return nil
		}
		if err := c.over(since); err != nil {
			return err
		}
	}
}

// over returns what ends every wait, however many events are queued; nil as long as
// nothing does. since is as in await.
func (c *Consumer) over(since uint32) error {
	switch {
	case c.d.main.closed():
		return errAborted
	case c.parked.Load()&unwaitableBit != 0 || c.barred.Load() != since:
		return errUnwaitable
	}
	return nil
}

// came reports whether the wait is over: an event notified, and enough are queued.
func (c *Consumer) came(threshold int) bool {
	c.turn.own.Check()
	return c.notice.due() && c.ready(threshold) >= threshold
}

// park announces that the waiter is about to sleep. Then it looks once more,
// because a producer that claimed its place before that did not see the announcement.
func (c *Consumer) park(threshold int) bool {
	c.parked.Or(uint32(threshold))
	yield.Point()
	c.awaitClaimed()
	return c.came(threshold)
}

// unpark undoes park. If a producer has decided to wake the waiter, its token is on
// its way, and unpark takes it.
func (c *Consumer) unpark() {
	c.turn.own.Check()
	if c.parked.And(flagBits)&^flagBits == 0 {
		<-c.token
	}
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
