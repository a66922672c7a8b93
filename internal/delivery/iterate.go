package delivery

import (
	"context"

	"godat/hw/event"
)

// Iterate calls yield for each event of a ring, until yield reports false, the
// context or the dispatcher ends, or the dispatcher becomes unwaitable.
func (c *Consumer) Iterate(ctx context.Context, yield func(event.Event) bool) {
	since := c.barred.Load()
	ev, ok := c.next(ctx, since)
	if !ok {
		return
	}
	defer c.triggerForRest() // however the loop ends
	for ok && yield(ev) {
		ev, ok = c.next(ctx, since)
	}
}

// triggerForRest triggers the CNO for events that came while an iterator was there to
// take them, and that the iterator leaves in the queue.
func (c *Consumer) triggerForRest() {
	if c.parked.Load()&cnoBit != 0 && !c.empty() {
		c.notice.set()
		c.released()
	}
}

// next waits for its turn and for an event. since is as in await.
func (c *Consumer) next(ctx context.Context, since uint32) (ev event.Event, ok bool) {
	for !c.turn.acquire(turnIterator) {
		if !c.turn.await(ctx, c.d.stop) {
			return event.Event{}, false
		}
	}
	defer c.releaseTurn()
	if c.over(since) != nil || c.ready(1) == 0 && c.await(ctx, 1, since) != nil {
		return event.Event{}, false
	}
	if c.parked.Load() != 0 {
		c.recount()
	}
	return c.first(), true
}

// releaseTurn is release for a consumer that waited.
func (c *Consumer) releaseTurn() {
	c.release()
	if c.turn.queued.Load() != 0 || c.parked.Load() != 0 {
		c.released()
	}
}

// released wakes an iterator that sleeps for its turn, and triggers the CNO for
// events that producers left to the waiter.
//
//go:noinline
func (c *Consumer) released() {
	c.turn.signal()
	c.wake(false)
}
