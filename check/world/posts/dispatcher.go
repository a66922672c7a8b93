package posts

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	dat "godat/runtime"
)

// style is how a consumer gets the events of a dispatcher.
type style uint8

const (
	byChannel   style = iota
	byBatch           // a channel of batches
	bySlowBatch       // batches have a least size, and a ticker flushes smaller ones
	byDequeue         // Dequeue, with a pause after several that found nothing
	byWait
	byThreshold // Wait for several at once
	byIterator
	byCallback
	styles

	// No dispatcher has these styles; the report counts them beside the others.
	byRoute = styles
	byShot  = styles + 1
)

func (s style) String() string {
	return [...]string{"channel", "batch", "slow batch", "dequeue", "wait", "threshold", "iterator", "callback", "route", "one-shot"}[s]
}

// hasChannel reports whether the events come through a channel that Close closes.
func (s style) hasChannel() bool { return s == byChannel || s == byBatch || s == bySlowBatch }

// consumedDispatcher is a dispatcher and its consumer.
type consumedDispatcher struct {
	// Immutable.
	dispatcherPlan
	w    *world
	disp *evd.Dispatcher
	main *consumer
	done chan struct{} // closed when the consumer has ended

	mu        sync.Mutex
	routes    [maxRoute + 1]*consumer // by tag; the open ones
	consumers []*consumer             // all routes whose channel is not closed
}

// dispatcherPlan is what newDispatcher makes a dispatcher from.
type dispatcherPlan struct {
	name   string
	style  style
	qlen   int
	tight  bool // its queue is shorter than what may be outstanding, so posts may find no room
	routed bool // it has routes
}

// marks is how many places of a dispatcher are for the books' own software
// events.
const marks = 8

// mostInBatch is the size of batches.
const mostInBatch = 16

// churned is the tag whose route is closed and made again while posts use it.
const churned = 2

// newDispatcher makes a dispatcher and starts its consumer. On failure it complains and
// returns nil.
func (w *world) newDispatcher(ia *dat.IA, plan dispatcherPlan) *consumedDispatcher {
	d := &consumedDispatcher{dispatcherPlan: plan, w: w, done: make(chan struct{})}
	d.name = fmt.Sprintf("%s, %v", plan.name, plan.style)
	d.qlen += marks
	if plan.style == byBatch || plan.style == bySlowBatch {
		d.qlen += mostInBatch // Release of a batch frees all its places at once
	}
	d.main = newConsumer(d, atMain)
	cfg := evd.Config{QLen: d.qlen, Streams: event.DefaultStreams | event.StreamSoftware}
	switch plan.style {
	case byChannel:
		cfg.Mode = evd.ModeChannel
	case byBatch:
		cfg.Mode, cfg.BatchMax = evd.ModeBatch, mostInBatch
	case bySlowBatch:
		cfg.Mode, cfg.BatchMin, cfg.BatchMax = evd.ModeBatch, 8, mostInBatch
	case byCallback:
		cfg.Mode, cfg.Callback = evd.ModeCallback, d.main.takeAll
	default: // ModeQueue
	}
	var err error
	if d.disp, err = ia.NewDispatcher(cfg); !w.must(err, "dispatcher %s", d.name) {
		return nil
	}
	if plan.routed {
		for tag := 1; tag <= maxRoute; tag++ {
			d.openRoute(tag)
		}
	}
	if w.cfg.AbruptClose {
		w.mu.Lock()
		w.dispatchers = append(w.dispatchers, d)
		w.mu.Unlock()
	}
	if plan.style == byCallback {
		return d // the library runs the callback
	}
	go d.run()
	return d
}

// openRoute makes the route of a tag and starts its consumer.
func (d *consumedDispatcher) openRoute(tag int) {
	r, err := d.disp.Route(routeMask, uint64(tag)<<tagShift, d.qlen)
	if !d.w.must(err, "route %d of %s", tag, d.name) {
		return
	}
	o := newConsumer(d, place(tag))
	o.route, o.ask, o.ended = r, make(chan chan struct{}), make(chan struct{})
	d.routes[tag] = o
	d.consumers = append(d.consumers, o)
	go o.follow()
}

// churn closes a route while posts use it, and makes it again.
func (d *consumedDispatcher) churn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.routed {
		return
	}
	d.w.must(d.routes[churned].route.Close(), "closing a route of %s", d.name)
	d.openRoute(churned)
}

// gone removes the consumer of a route whose channel is closed.
func (d *consumedDispatcher) gone(o *consumer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.consumers = slices.DeleteFunc(d.consumers, func(x *consumer) bool { return x == o })
}

// closedRoutes are the consumers of routes that were closed, whose channels are not closed.
func (d *consumedDispatcher) closedRoutes() (list []*consumer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.consumers {
		if o != d.routes[o.place] {
			list = append(list, o)
		}
	}
	return list
}

func (d *consumedDispatcher) openConsumers() []*consumer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.consumers)
}

// mark is a software event. When the consumer gets it, it has got every event that
// was delivered before.
type mark struct {
	got  chan struct{}
	last bool // the consumer ends
}

// sync waits until every event that was delivered to the dispatcher or its routes
// is in the books.
func (d *consumedDispatcher) sync() {
	m := &mark{got: make(chan struct{})}
	d.post(m)
	d.disp.Flush()
	d.w.await(m.got, "an event posted to dispatcher %s", d.name)
	for _, o := range d.openConsumers() {
		o.sync()
	}
}

// post posts a mark, again and again while the dispatcher has no room for it.
func (d *consumedDispatcher) post(m *mark) {
	for deadline := time.Now().Add(d.w.cfg.Patience); ; {
		err := d.disp.PostSoftware(m)
		switch {
		case err == nil:
			return
		case !errors.Is(err, hw.ErrQueueFull):
			d.w.complain(Code, "posting a software event to %s: %v", d.name, err)
			return
		case time.Now().After(deadline):
			d.w.complain(Stuck, "dispatcher %s has no room for a software event", d.name)
			return
		}
		time.Sleep(idlePause)
	}
}

// close closes the dispatcher, after everything that fed it, and checks that all reserved
// room came back: a channel closes only then, and a queue must take as many events
// as it is long. It does not check the room of a dispatcher with a callback.
func (d *consumedDispatcher) close() {
	w := d.w
	ends := d.style.hasChannel()
	if !ends {
		m := &mark{got: make(chan struct{}), last: true}
		d.post(m)
		if !w.await(m.got, "the last event of dispatcher %s", d.name) {
			return
		}
	}
	if !ends && d.style != byCallback {
		if !w.await(d.done, "the consumer of dispatcher %s", d.name) {
			return
		}
		d.checkRoom()
	}
	for _, o := range d.closedRoutes() {
		w.await(o.ended, "closed route %d of dispatcher %s to close its channel: not all reservations came back", o.place, d.name)
	}
	if !w.must(d.disp.Close(), "closing dispatcher %s", d.name) {
		return
	}
	if ends && !w.await(d.done, "dispatcher %s to close its channel: not all reservations came back", d.name) {
		return
	}
	for _, o := range d.openConsumers() {
		w.await(o.ended, "route %d of dispatcher %s to close its channel: not all reservations came back", o.place, d.name)
	}
}

// checkRoom fills the dispatcher, whose consumer has ended, and complains unless it
// takes exactly qlen events. A dispatcher that was aborted meanwhile refuses them
// all, without a complaint.
func (d *consumedDispatcher) checkRoom() {
	n := 0
	var err error
	for n <= d.qlen {
		if err = d.disp.PostSoftware(&mark{}); err != nil {
			break
		}
		n++
	}
	if n != d.qlen && !(errors.Is(err, hw.ErrInvalidHandle) && d.w.broken()) {
		d.w.complain(Leak, "dispatcher %s has room for %d events; it was made for %d: %v", d.name, n, d.qlen, err)
	}
}

// class is the class of a dispatcher: which feeds may share it.
type class uint8

const (
	anyFeed class = iota
	unsignalledFeed
	solicitedFeed
	classes
)

// stylesOf returns the styles for a class. Thresholds, iterators and slow batches
// are only for feeds whose every completion notifies.
func stylesOf(c class) []style {
	if c == anyFeed {
		return []style{byChannel, byBatch, bySlowBatch, byDequeue, byWait, byThreshold, byIterator, byCallback}
	}
	return []style{byChannel, byBatch, byDequeue, byWait, byCallback}
}

// classOf returns the class of the dispatcher for one of an account's lanes.
func (a *account) classOf(d direction) class {
	switch {
	case a.kind == silent:
		return unsignalledFeed
	case a.kind == solicited && d == receives:
		return solicitedFeed
	}
	return anyFeed
}

// chooseDispatchers chooses the dispatchers of the endpoint's events: one for all, or one
// for connections and one for each lane. Each is the account's own, and exactly as
// long as needed, or shared.
func (a *account) chooseDispatchers(rng *rand.Rand) bool {
	room := a.lanes[requests].room() + a.lanes[receives].room() + 2
	one := a.kind == plain && rng.IntN(2) == 0
	switch {
	case one && rng.IntN(2) == 0:
		all := stylesOf(anyFeed)
		a.conn = a.ownDispatcher(dispatcherPlan{style: all[rng.IntN(len(all))], qlen: room, routed: rng.IntN(2) == 0})
	default:
		a.conn = a.home.shared(anyFeed, rng)
	}
	if one {
		a.lanes[requests].dispatcher, a.lanes[receives].dispatcher = a.conn, a.conn
		return a.conn != nil
	}
	for dir := range a.lanes {
		a.lanes[dir].dispatcher = a.chooseDispatcher(direction(dir), rng)
	}
	return a.conn != nil && a.lanes[requests].dispatcher != nil && a.lanes[receives].dispatcher != nil
}

func (a *account) chooseDispatcher(d direction, rng *rand.Rand) *consumedDispatcher {
	c := a.classOf(d)
	if rng.IntN(2) == 0 {
		return a.home.shared(c, rng)
	}
	all := stylesOf(c)
	plan := dispatcherPlan{style: all[rng.IntN(len(all))], qlen: a.lanes[d].room(), routed: rng.IntN(2) == 0}
	// Only a dispatcher of requests may be tight: receives must always find room, or the
	// peer's sends would wait for ever. A channel can't be: it has more room than
	// its length says.
	if d == requests && c == anyFeed && plan.style != byChannel && rng.IntN(3) == 0 {
		plan.tight = true
		plan.qlen = max(1, plan.qlen/4)
	}
	return a.ownDispatcher(plan)
}

func (a *account) ownDispatcher(plan dispatcherPlan) *consumedDispatcher {
	plan.name = a.String()
	d := a.w.newDispatcher(a.home.ia, plan)
	if d != nil {
		a.own = append(a.own, d)
	}
	return d
}

// noRoom reports whether err says that a dispatcher has no room.
func noRoom(err error) bool {
	return errors.Is(err, &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceTEVD})
}
