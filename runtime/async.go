package runtime

import (
	"sync"

	"go.uber.org/zap"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
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
		d, err := evd.New(evd.Config{QLen: asyncQLen, Streams: event.StreamAsync | event.StreamSoftware, IA: ia})
		if err != nil {
			return nil, err
		}
		a.to, a.own = d, true
	}
	if a.to == nil {
		return a, nil
	}
	return a, wiring(a.to).Feeds().Attach(asyncFeed)
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
	a.log.Error("asynchronous error", zap.Stringer("kind", asyncText(ev.Kind)), zap.Error(ev.Err))
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
	if node == nil && len(a.nodes) >= asyncNodes {
		a.forgetClosed()
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

// forgetClosed drops the latches of closed objects, which report no more errors. mu is
// held.
func (a *asyncErrors) forgetClosed() {
	for key := range a.nodes {
		if !isOpen(key.source) {
			delete(a.nodes, key)
		}
	}
}

// isOpen reports whether the source of an error is not closed.
func isOpen(source any) bool {
	var err error
	switch s := source.(type) {
	case *ep.Endpoint:
		_, err = s.Status()
	case *ep.SRQ:
		_, err = s.Query(0)
	case *evd.Dispatcher:
		_, err = s.Query(0)
	}
	return err == nil
}

// event makes the event by which the program learns of an error. mu is held.
func (a *asyncErrors) event(ev hw.AsyncEvent) (e event.Event) {
	if a.ia != nil {
		e.Source = a.ia
	}
	switch ev.Kind {
	case hw.AsyncDeviceFatal:
		e.Number, e.Data = event.AsyncIACatastrophic, event.IACatastrophic
	case hw.AsyncPortDown:
		e.Number, e.Data = event.AsyncIACatastrophic, event.ReasonOther
	case hw.AsyncQPError:
		e.Number, e.Data, e.Source = event.AsyncEPBroken, event.EPToError, nil
		if a.ia != nil && a.ia.adapter != nil {
			if owner := a.ia.adapter.OfQP(ev.QP); owner != nil {
				e.Source = owner
			}
		}
	case hw.AsyncSRQError:
		e.Number, e.Data, e.Source = event.AsyncEPBroken, event.SRQToError, nil
		if a.ia != nil && a.ia.adapter != nil {
			if owner := a.ia.adapter.FailSRQ(ev.SRQ); owner != nil {
				e.Source = owner
			}
		}
	case hw.AsyncCQOverrun:
		e.Number, e.Data, e.Source = event.AsyncEVDOverflow, event.EVDOverflow, nil
		if a.ia != nil && a.ia.polling != nil {
			if d := a.ia.polling.Dispatcher(ev.CQ); d != nil {
				e.Source = d
			}
		}
	default:
		e.Number, e.Data = event.AsyncProviderError, event.ReasonOther
	}
	return e
}

// asyncText names a kind in the log.
type asyncText hw.AsyncKind

func (k asyncText) String() string {
	switch hw.AsyncKind(k) {
	case hw.AsyncDeviceFatal:
		return "device fatal"
	case hw.AsyncPortDown:
		return "port down"
	case hw.AsyncQPError:
		return "queue pair error"
	case hw.AsyncCQOverrun:
		return "completion queue overrun"
	case hw.AsyncSRQError:
		return "shared receive queue error"
	default:
		return "provider error"
	}
}
