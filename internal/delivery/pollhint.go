package delivery

import "godat/hw/event"

// A polled device keeps completions that no consumer has heard of: those that wake
// no goroutine, because they are not solicited, and all of them where consumers
// poll. Three callers poll the device themselves: a Dequeue that finds nothing, a
// Wait that finds too few events, and a poster without room, whose places such
// completions hold.

// PollHint says what the caller of a device's poll does next.
type PollHint uint8

const (
	// PollNow is the hint of a Dequeue. The poll may deliver what the device has
	// before it returns, so the caller looks into its queue again.
	PollNow PollHint = iota
	// PollBeforeSleep is PollNow for a caller that is about to sleep, and that later
	// completions must wake: a Wait, and a Dequeue on a dispatcher with a CNO.
	PollBeforeSleep
	// PollElsewhere is the hint of a poster. It may hold locks that deliveries take, so
	// another goroutine polls the device.
	PollElsewhere
)

// SetPollDevice sets the function that polls the device behind the dispatcher; nil
// for none. It must not block. Any number of goroutines call it, each time that one
// finds too few events. The owner of the completion queues sets it where they are
// solicited-only, or are polled by consumers.
func (d *Dispatcher) SetPollDevice(poll func(PollHint)) {
	if poll == nil {
		d.main.parked.And(^uint32(pollBit))
		d.pollDevice.Store(nil)
		return
	}
	d.pollDevice.Store(&poll)
	d.main.parked.Or(pollBit)
}

// pollDevice polls the device. The caller has seen pollBit.
//
//go:noinline
func (q *Queue) pollDevice(hint PollHint) {
	if poll := q.d.pollDevice.Load(); poll != nil {
		(*poll)(hint)
	}
}

// dequeuePolled is Dequeue for a caller that found nothing in a queue with pollBit.
//
//go:noinline
func (d *Dispatcher) dequeuePolled(buf []event.Event) (int, error) {
	q := &d.main
	hint := PollNow
	if q.parked.Load()&cnoBit != 0 {
		hint = PollBeforeSleep
	}
	q.pollDevice(hint)
	if q.cons.Load() == q.ring.Tail()<<consShift && d.async.count.Load() == 0 {
		return 0, nil
	}
	if !q.acquire(consBusy) {
		return 0, errDequeueWaiter
	}
	n := q.take(buf)
	if n < len(buf) {
		n += q.takeGap(buf[n:])
	}
	q.release()
	return n, nil
}
