package runtime

import (
	"maps"
	"sync"

	"go.uber.org/zap"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
	"godat/internal/door"
)

const (
	// asyncQLen is the length of the dispatcher that an adapter makes for asynchronous
	// errors. Only the program's own events take its places; an asynchronous error
	// brings its own node.
	asyncQLen = 64
	// asyncNodes is how many latches an adapter keeps. Beyond it, errors of further
	// objects share one latch for each kind.
	asyncNodes = 1024
)

// asyncFeed is what an adapter feeds its dispatcher of asynchronous errors with.
var asyncFeed = delivery.Feed{Streams: event.StreamAsync}

// asyncErrors turns what a device reports on its own into events and log lines.
type asyncErrors struct {
	// Immutable after newAsyncErrors.
	to  *evd.Dispatcher // nil: none
	own bool            // made here
	log *zap.Logger

	mu      sync.Mutex
	ia      *IA // the source of the device's errors; nil until the adapter is open
	nodes   map[asyncKey]*delivery.AsyncNode
	counted AsyncCounters
	before  AsyncCounters // counted at the last reset
}

// asyncKey is what an error is latched by: an error that the device reports again
// before the program has taken its event makes no second event.
type asyncKey struct {
	kind   hw.AsyncKind
	source any
}

// newAsyncErrors prepares the asynchronous errors of an adapter that is about to be
// opened.
func newAsyncErrors(cfg *config, ia *IA) (*asyncErrors, error) {
	a := &asyncErrors{log: cfg.log, to: cfg.async, nodes: make(map[asyncKey]*delivery.AsyncNode)}
	if !cfg.hasAsync {
		cfg := evd.Config{QLen: asyncQLen, Streams: event.StreamAsync | event.StreamSoftware}
		cfg.On(door.Key{}, ia, nil)
		d, err := evd.New(cfg)
		if err != nil {
			return nil, err
		}
		a.to, a.own = d, true
	}
	if a.to == nil {
		return a, nil
	}
	if !a.own && !isOpen(a.to) {
		return a, hw.Errorf("runtime.Open", hw.InvalidHandle, hw.HandleEVDAsync, "the dispatcher of WithAsync is zero or closed")
	}
	return a, named("runtime.Open", "WithAsync", wiring(a.to).Feeds().Attach(asyncFeed))
}

// open tells whose the errors are from now on: whoever gets one may use the adapter.
func (a *asyncErrors) open(ia *IA) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ia = ia
}

// close detaches from the dispatcher. A dispatcher that the adapter made is aborted:
// its waiters get ABORT.
func (a *asyncErrors) close() {
	if a.to == nil {
		return
	}
	wiring(a.to).Feeds().Detach(asyncFeed)
	if a.own {
		wiring(a.to).Abort()
	}
}

// report counts and logs an error, and enqueues its event. It does not block on the
// program.
func (a *asyncErrors) report(ev hw.AsyncEvent) {
	a.log.Error("asynchronous error", zap.String("kind", wordsOf(ev.Kind).text), zap.Error(ev.Err))
	if node := a.node(ev); a.to != nil {
		wiring(a.to).PutAsync(node)
	}
}

// node counts an error and returns its latch.
func (a *asyncErrors) node(ev hw.AsyncEvent) *delivery.AsyncNode {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.counted.count(ev.Kind)
	e := a.event(ev)
	key := asyncKey{ev.Kind, e.Source}
	node := a.nodes[key]
	if node == nil && len(a.nodes) >= asyncNodes { // closed objects report no more errors, but a device does until its close has ended
		maps.DeleteFunc(a.nodes, func(key asyncKey, _ *delivery.AsyncNode) bool {
			return key.source != any(a.ia) && !isOpen(key.source)
		})
	}
	if node == nil && len(a.nodes) >= asyncNodes {
		key.source, e.Source = nil, nil
		node = a.nodes[key]
	}
	if node == nil {
		node = &delivery.AsyncNode{Event: e}
		a.nodes[key] = node
	}
	return node
}

// asyncWords are what an error of a kind is called in the log and in its event, and whose
// it is if it is not the device's.
type asyncWords struct {
	text   string
	number event.Number
	reason event.Reason
	source func(ia *IA, ev hw.AsyncEvent) any
}

var asyncKinds = map[hw.AsyncKind]asyncWords{
	hw.AsyncDeviceFatal: {"device fatal", event.AsyncIACatastrophic, event.IACatastrophic, nil},
	hw.AsyncPortDown:    {"port down", event.AsyncIACatastrophic, event.ReasonOther, nil},
	hw.AsyncQPError: {"queue pair error", event.AsyncEPBroken, event.EPToError, func(ia *IA, ev hw.AsyncEvent) any {
		return orNil(ia.adapter.OfQP(ev.QP))
	}},
	hw.AsyncSRQError: {"shared receive queue error", event.AsyncEPBroken, event.SRQToError, func(ia *IA, ev hw.AsyncEvent) any {
		return orNil(ia.adapter.FailSRQ(ev.SRQ))
	}},
	hw.AsyncCQOverrun: {"completion queue overrun", event.AsyncEVDOverflow, event.EVDOverflow, func(ia *IA, ev hw.AsyncEvent) any {
		if ia.polling == nil {
			return nil
		}
		return orNil(ia.polling.Dispatcher(ev.CQ))
	}},
}

func wordsOf(kind hw.AsyncKind) asyncWords {
	if words, ok := asyncKinds[kind]; ok {
		return words
	}
	return asyncWords{"provider error", event.AsyncProviderError, event.ReasonOther, nil}
}

// event makes the event by which the program learns of an error. mu is held.
func (a *asyncErrors) event(ev hw.AsyncEvent) event.Event {
	words := wordsOf(ev.Kind)
	e := event.Event{Number: words.number, Data: words.reason}
	switch {
	case a.ia == nil:
	case words.source == nil:
		e.Source = a.ia
	default:
		e.Source = words.source(a.ia, ev)
	}
	return e
}

// orNil is an object, or nil without a type.
func orNil[T any](object *T) any {
	if object == nil {
		return nil
	}
	return object
}
