package ledger

import (
	"context"
	"errors"
	"runtime"
	"time"

	dat "godat/runtime"
)

// outlet is the consumer of one ordered source of events: of a dispatcher, or of a
// route.
type outlet struct {
	// Immutable.
	hub   *hub
	place place
	route *dat.Route         // nil for a dispatcher
	ask   chan chan struct{} // carries requests to drain the route's channel
	ended chan struct{}      // closed when the consumer of the route has ended

	// Owned by the consumer.
	seen map[uint32]*sight
	last bool
}

// sight is what an outlet has seen of one account.
type sight struct {
	up     bool            // ESTABLISHED has come, and no end
	said   dat.EventNumber // the last connection event
	orders [2]order
}

func newOutlet(h *hub, at place) *outlet {
	return &outlet{hub: h, place: at, seen: make(map[uint32]*sight)}
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
func (h *hub) run() {
	defer close(h.done)
	o := h.main
	switch h.style {
	case byChannel:
		for ev := range h.disp.C() {
			o.take(&ev)
		}
	case byBatch:
		for b := range h.disp.Batches() {
			o.batch(b)
		}
	case bySlowBatch:
		o.slowly()
	case byDequeue:
		o.look()
	case byIterator:
		for ev := range h.disp.Events(context.Background()) {
			if o.take(&ev); o.last {
				return
			}
		}
	default:
		o.wait()
	}
}

func (o *outlet) batch(b *dat.Batch) {
	evs := b.Events()
	for i := range evs {
		o.take(&evs[i])
	}
	b.Release()
}

// slowly receives batches that have a least size, and flushes smaller ones.
func (o *outlet) slowly() {
	tick := time.NewTicker(flushInterval)
	defer tick.Stop()
	for {
		select {
		case b, ok := <-o.hub.disp.Batches():
			if !ok {
				return
			}
			o.batch(b)
		case <-tick.C:
			o.hub.disp.Flush()
		}
	}
}

// look gets events by Dequeue.
func (o *outlet) look() {
	var evs [manyEvents]dat.Event
	for idle := 0; !o.last; {
		n, err := o.hub.disp.Dequeue(evs[:])
		if err != nil {
			o.wronged("Dequeue", err)
			return
		}
		for i := range evs[:n] {
			o.take(&evs[i])
		}
		switch idle++; {
		case n > 0:
			idle = 0
		case idle < idleRounds:
			runtime.Gosched()
		default:
			time.Sleep(idlePause)
		}
	}
}

// wait gets events by Wait, for one or for a threshold.
func (o *outlet) wait() {
	ctx, least := context.Background(), 1
	for !o.last {
		cancel := context.CancelFunc(func() {})
		if o.hub.style == byThreshold {
			least = threshold
			ctx, cancel = context.WithTimeout(context.Background(), thresholdWait)
		}
		ev, more, err := o.hub.disp.Wait(ctx, least)
		cancel()
		switch {
		case err == nil && more < least-1:
			o.hub.w.complain(Code, "Wait for %d on %s: only %d more", least, o.hub.name, more)
			fallthrough
		case err == nil:
			o.take(&ev)
		case !errors.Is(err, dat.ErrTimeout) || least == 1:
			o.wronged("Wait", err)
			return
		default:
			o.rest()
		}
	}
}

// rest dequeues the events that are fewer than the threshold of a wait that timed
// out.
func (o *outlet) rest() {
	var evs [threshold]dat.Event
	n, err := o.hub.disp.Dequeue(evs[:])
	if err != nil {
		o.wronged("Dequeue", err)
	}
	for i := range evs[:n] {
		o.take(&evs[i])
	}
}

// callback is the callback of a dispatcher.
func (o *outlet) callback(evs []dat.Event) {
	for i := range evs {
		o.take(&evs[i])
	}
}

// follow receives a route's events until its channel is closed.
func (o *outlet) follow() {
	defer close(o.ended)
	defer o.hub.gone(o)
	for {
		select {
		case ev, ok := <-o.route.C():
			if !ok {
				return
			}
			o.take(&ev)
		case answer := <-o.ask:
			if !o.drain(answer) {
				return
			}
		}
	}
}

// drain takes all events in the route's channel; it returns false if that is
// closed.
func (o *outlet) drain(answer chan struct{}) bool {
	defer close(answer)
	for {
		select {
		case ev, ok := <-o.route.C():
			if !ok {
				return false
			}
			o.take(&ev)
		default:
			return true
		}
	}
}

// sync waits until every event in the route's channel is in the books.
func (o *outlet) sync() {
	answer := make(chan struct{})
	select {
	case o.ask <- answer:
		o.hub.w.await(answer, "route %d of %s", o.place, o.hub.name)
	case <-o.ended:
	}
}

// wronged complains of a call that failed, unless the run is ending because of a
// complaint or a fall.
func (o *outlet) wronged(call string, err error) {
	if !o.hub.w.broken() {
		o.hub.w.complain(Code, "%s on %s: %v", call, o.hub.name, err)
	}
}
