package posts

import (
	"context"
	"errors"
	"runtime"
	"time"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
)

// consumer consumes one ordered source of events: those of a dispatcher, or those of a
// route.
type consumer struct {
	// Immutable.
	dispatcher *consumedDispatcher
	place      place
	route      *evd.Route         // nil for a dispatcher
	ask        chan chan struct{} // carries requests to drain the route's channel
	ended      chan struct{}      // closed when the consumer of the route has ended

	// Owned by the consumer.
	seen map[*account]*sight
	last bool
}

// sight is what an consumer has seen of one account.
type sight struct {
	up     bool         // ESTABLISHED has come, and no end
	said   event.Number // the last connection event
	orders [2]order
}

func newConsumer(d *consumedDispatcher, at place) *consumer {
	return &consumer{dispatcher: d, place: at, seen: make(map[*account]*sight)}
}

// idlePause is the pause of a consumer that polls and finds nothing; flushInterval
// is how often a consumer of slow batches flushes.
const (
	idlePause     = 50 * time.Microsecond
	flushInterval = 500 * time.Microsecond
	idleRounds    = 10
	manyEvents    = 32
	threshold     = 3
	thresholdWait = 2 * time.Millisecond
)

// run is the consumer's goroutine: it gets events until the last one.
func (d *consumedDispatcher) run() {
	defer close(d.done)
	o := d.main
	switch d.style {
	case byChannel:
		for ev := range d.disp.C() {
			o.take(&ev)
		}
	case byBatch:
		for b := range d.disp.Batches() {
			o.batch(b)
		}
	case bySlowBatch:
		o.consumeSlowBatches()
	case byDequeue:
		o.consumeByDequeue()
	case byIterator:
		for ev := range d.disp.Events(context.Background()) {
			if o.take(&ev); o.last {
				return
			}
		}
	default:
		o.consumeByWait()
	}
}

// takeAll enters events into the books. It is the callback of a dispatcher that has one.
func (o *consumer) takeAll(evs []event.Event) {
	for i := range evs {
		o.take(&evs[i])
	}
}

func (o *consumer) batch(b *evd.Batch) {
	o.takeAll(b.Events())
	b.Release()
}

// dequeue takes what Dequeue returns in evs, and reports how much that was, and whether
// the call succeeded.
func (o *consumer) dequeue(evs []event.Event) (n int, ok bool) {
	n, err := o.dispatcher.disp.Dequeue(evs)
	if err != nil {
		o.callFailed("Dequeue", err)
	}
	o.takeAll(evs[:n])
	return n, err == nil
}

// consumeSlowBatches receives batches that have a least size, and flushes smaller ones.
func (o *consumer) consumeSlowBatches() {
	tick := time.NewTicker(flushInterval)
	defer tick.Stop()
	for {
		select {
		case b, ok := <-o.dispatcher.disp.Batches():
			if !ok {
				return
			}
			o.batch(b)
		case <-tick.C:
			o.dispatcher.disp.Flush()
		}
	}
}

// consumeByDequeue gets events by Dequeue.
func (o *consumer) consumeByDequeue() {
	var evs [manyEvents]event.Event
	for idle := 0; !o.last; {
		n, ok := o.dequeue(evs[:])
		switch idle++; {
		case !ok:
			return
		case n > 0:
			idle = 0
		case idle < idleRounds:
			runtime.Gosched()
		default:
			time.Sleep(idlePause)
		}
	}
}

// consumeByWait gets events by Wait, for one or for a threshold.
func (o *consumer) consumeByWait() {
	var rest [threshold]event.Event
	ctx, least := context.Background(), 1
	for !o.last {
		cancel := context.CancelFunc(func() {})
		if o.dispatcher.style == byThreshold {
			least = threshold
			ctx, cancel = context.WithTimeout(context.Background(), thresholdWait)
		}
		ev, more, err := o.dispatcher.disp.Wait(ctx, least)
		cancel()
		switch {
		case err == nil && more < least-1:
			o.dispatcher.w.complain(Code, "Wait for %d on %s: only %d more", least, o.dispatcher.name, more)
			fallthrough
		case err == nil:
			o.take(&ev)
		case !errors.Is(err, hw.ErrTimeout) || least == 1:
			o.callFailed("Wait", err)
			return
		default:
			o.dequeue(rest[:]) // fewer events than the threshold of the wait that timed out
		}
	}
}

// follow receives a route's events until its channel is closed.
func (o *consumer) follow() {
	defer close(o.ended)
	defer o.dispatcher.gone(o)
	for {
		select {
		case ev, ok := <-o.route.C():
			if !ok {
				return
			}
			o.take(&ev)
		case answer := <-o.ask:
			for len(o.route.C()) > 0 { // no other goroutine receives from it
				ev := <-o.route.C()
				o.take(&ev)
			}
			close(answer)
		}
	}
}

// sync waits until every event in the route's channel is in the books.
func (o *consumer) sync() {
	answer := make(chan struct{})
	select {
	case o.ask <- answer:
		o.dispatcher.w.await(answer, "route %d of %s", o.place, o.dispatcher.name)
	case <-o.ended:
	}
}

// callFailed complains of a call that failed, unless the run is ending because of a
// complaint or an abrupt close.
func (o *consumer) callFailed(call string, err error) {
	if !o.dispatcher.w.broken() {
		o.dispatcher.w.complain(Code, "%s on %s: %v", call, o.dispatcher.name, err)
	}
}
