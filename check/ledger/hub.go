package ledger

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"godat/hw"
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

// hub is a dispatcher and its consumer.
type hub struct {
	// Immutable.
	w     *world
	name  string
	style style
	qlen  int
	tight bool // its queue is shorter than what may be outstanding, so posts may find no room
	disp  *dat.Dispatcher
	main  *outlet
	done  chan struct{} // closed when the consumer has ended

	routed bool // it has routes

	mu      sync.Mutex
	routes  [maxRoute + 1]*outlet // by tag; the open ones
	outlets []*outlet             // all routes whose channel is not closed
}

// hubPlan is what newHub makes a hub from.
type hubPlan struct {
	name   string
	style  style
	qlen   int
	tight  bool
	routed bool
}

// marks is how many places of a dispatcher are for the ledger's own software
// events.
const marks = 8

// mostInBatch is the size of batches.
const mostInBatch = 16

// churned is the tag whose route is closed and made again while posts use it.
const churned = 2

// newHub makes a dispatcher and starts its consumer. On failure it complains and
// returns nil.
func (w *world) newHub(ia *dat.IA, plan hubPlan) *hub {
	h := &hub{
		w: w, name: fmt.Sprintf("%s, %v", plan.name, plan.style), style: plan.style, qlen: plan.qlen + marks,
		tight: plan.tight, routed: plan.routed, done: make(chan struct{}),
	}
	if plan.style == byBatch || plan.style == bySlowBatch {
		h.qlen += mostInBatch // Release of a batch frees all its places at once
	}
	h.main = newOutlet(h, atMain)
	cfg := dat.DispatcherConfig{QLen: h.qlen, Streams: dat.DefaultStreams | dat.StreamSoftware}
	switch plan.style {
	case byChannel:
		cfg.Mode = dat.ModeChannel
	case byBatch:
		cfg.Mode, cfg.BatchMax = dat.ModeBatch, mostInBatch
	case bySlowBatch:
		cfg.Mode, cfg.BatchMin, cfg.BatchMax = dat.ModeBatch, 8, mostInBatch
	case byCallback:
		cfg.Mode, cfg.Callback = dat.ModeCallback, h.main.callback
	default: // ModeQueue
	}
	var err error
	if h.disp, err = ia.NewDispatcher(cfg); err != nil {
		w.complain(Code, "dispatcher %s: %v", h.name, err)
		return nil
	}
	if plan.routed {
		for tag := 1; tag <= maxRoute; tag++ {
			h.openRoute(tag)
		}
	}
	if w.cfg.Fall {
		w.mu.Lock()
		w.hubs = append(w.hubs, h)
		w.mu.Unlock()
	}
	if plan.style == byCallback {
		return h // the library runs the callback
	}
	go h.run()
	return h
}

// openRoute makes the route of a tag and starts its consumer.
func (h *hub) openRoute(tag int) {
	r, err := h.disp.Route(routeMask, uint64(tag)<<tagShift, h.qlen)
	if err != nil {
		h.w.complain(Code, "route %d of %s: %v", tag, h.name, err)
		return
	}
	o := newOutlet(h, place(tag))
	o.route, o.ask, o.ended = r, make(chan chan struct{}), make(chan struct{})
	h.routes[tag] = o
	h.outlets = append(h.outlets, o)
	go o.follow()
}

// churn closes a route while posts use it, and makes it again.
func (h *hub) churn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.routed {
		return
	}
	if err := h.routes[churned].route.Close(); err != nil {
		h.w.complain(Code, "closing a route of %s: %v", h.name, err)
	}
	h.openRoute(churned)
}

// gone removes the outlet of a route whose channel is closed.
func (h *hub) gone(o *outlet) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.outlets = slices.DeleteFunc(h.outlets, func(x *outlet) bool { return x == o })
}

func (h *hub) openOutlets() []*outlet {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.outlets)
}

// mark is a software event. When the consumer gets it, it has got every event that
// was delivered before.
type mark struct {
	got  chan struct{}
	last bool // the consumer ends
}

// sync waits until every event that was delivered to the dispatcher or its routes
// is in the books.
func (h *hub) sync() {
	m := &mark{got: make(chan struct{})}
	h.post(m)
	h.disp.Flush()
	h.w.await(m.got, "an event posted to dispatcher %s", h.name)
	for _, o := range h.openOutlets() {
		o.sync()
	}
}

// post posts a mark, again and again while the dispatcher has no room for it.
func (h *hub) post(m *mark) {
	for deadline := time.Now().Add(h.w.cfg.Patience); ; {
		err := h.disp.PostSoftware(m)
		switch {
		case err == nil:
			return
		case !errors.Is(err, dat.ErrQueueFull):
			h.w.complain(Code, "posting a software event to %s: %v", h.name, err)
			return
		case time.Now().After(deadline):
			h.w.complain(Stuck, "dispatcher %s has no room for a software event", h.name)
			return
		}
		time.Sleep(idlePause)
	}
}

// close closes the hub, after everything that fed it, and checks that all reserved
// room came back: a channel closes only then, and a queue must take as many events
// as it is long. It does not check the room of a dispatcher with a callback.
func (h *hub) close() {
	w := h.w
	ends := h.style == byChannel || h.style == byBatch || h.style == bySlowBatch
	if !ends {
		m := &mark{got: make(chan struct{}), last: true}
		h.post(m)
		if !w.await(m.got, "the last event of dispatcher %s", h.name) {
			return
		}
	}
	if !ends && h.style != byCallback {
		if !w.await(h.done, "the consumer of dispatcher %s", h.name) {
			return
		}
		h.checkRoom()
	}
	if err := h.disp.Close(); err != nil {
		w.complain(Code, "closing dispatcher %s: %v", h.name, err)
		return
	}
	if ends && !w.await(h.done, "dispatcher %s to close its channel: not all reservations came back", h.name) {
		return
	}
	for _, o := range h.openOutlets() {
		w.await(o.ended, "route %d of dispatcher %s to close its channel: not all reservations came back", o.place, h.name)
	}
}

// checkRoom fills the dispatcher, whose consumer has ended, and complains unless it
// takes exactly qlen events. A dispatcher that was aborted meanwhile refuses them
// all, without a complaint.
func (h *hub) checkRoom() {
	n := 0
	var err error
	for n <= h.qlen {
		if err = h.disp.PostSoftware(&mark{}); err != nil {
			break
		}
		n++
	}
	if n != h.qlen && !(errors.Is(err, dat.ErrInvalidHandle) && h.w.broken()) {
		h.w.complain(Leak, "dispatcher %s has room for %d events; it was made for %d: %v", h.name, n, h.qlen, err)
	}
}

// class is the class of a hub: which feeds may share it.
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

// classOf returns the class of the hub for one of an account's lanes.
func (a *account) classOf(d direction) class {
	switch {
	case a.kind == silent:
		return unsignalledFeed
	case a.kind == solicited && d == receives:
		return solicitedFeed
	}
	return anyFeed
}

// chooseHubs chooses the dispatchers of the endpoint's events: one for all, or one
// for connections and one for each lane. Each is the account's own, and exactly as
// long as needed, or shared.
func (a *account) chooseHubs(rng *rand.Rand) bool {
	room := a.lanes[requests].room() + a.lanes[receives].room() + 2
	one := a.kind == plain && rng.IntN(2) == 0
	switch {
	case a.w.cfg.Simple:
		a.conn = a.ownHub(hubPlan{style: byChannel, qlen: room})
	case one && rng.IntN(2) == 0:
		all := stylesOf(anyFeed)
		a.conn = a.ownHub(hubPlan{style: all[rng.IntN(len(all))], qlen: room, routed: rng.IntN(2) == 0})
	default:
		a.conn = a.home.shared(anyFeed, rng)
	}
	if one || a.w.cfg.Simple {
		a.lanes[requests].hub, a.lanes[receives].hub = a.conn, a.conn
		return a.conn != nil
	}
	for dir := range a.lanes {
		a.lanes[dir].hub = a.chooseHub(direction(dir), rng)
	}
	return a.conn != nil && a.lanes[requests].hub != nil && a.lanes[receives].hub != nil
}

func (a *account) chooseHub(d direction, rng *rand.Rand) *hub {
	c := a.classOf(d)
	if rng.IntN(2) == 0 {
		return a.home.shared(c, rng)
	}
	all := stylesOf(c)
	plan := hubPlan{style: all[rng.IntN(len(all))], qlen: a.lanes[d].room(), routed: rng.IntN(2) == 0}
	// Only a hub of requests may be tight: receives must always find room, or the
	// peer's sends would wait for ever. A channel can't be: it has more room than
	// its length says.
	if d == requests && c == anyFeed && plan.style != byChannel && rng.IntN(3) == 0 {
		plan.tight = true
		plan.qlen = max(1, plan.qlen/4)
	}
	return a.ownHub(plan)
}

func (a *account) ownHub(plan hubPlan) *hub {
	plan.name = a.String()
	h := a.w.newHub(a.home.ia, plan)
	if h != nil {
		a.own = append(a.own, h)
	}
	return h
}

// noRoom reports whether err says that a dispatcher has no room.
func noRoom(err error) bool {
	return errors.Is(err, &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceTEVD})
}
