package ep

import (
	"sync"
	"sync/atomic"

	"godat/ep/internal/line"
	"godat/evd"
	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/door"
	"godat/mem"
)

// base is what all objects of an adapter share. What an adapter has of each kind of object is a registry: srqRegistry
// stands on base, endpointRegistry on that one, pointRegistry above, and an Adapter has all. An object names the
// registry of its own kind, and so knows what lies below it and nothing else: an endpoint no service points, a shared
// receive queue no endpoints.
type base struct {
	// Immutable after NewAdapter.
	cfg  AdapterConfig
	attr hw.Attr // the device's

	counters counters
	latency  latency
	ends     ends
	crew     line.Crew
	traces   atomic.Bool    // the device's queue pairs are hw.Tracers; newDevice writes it
	alarms   sync.WaitGroup // set, or going off now
}

// cqPool lends completion queues on a polled device. One goroutine at a time hands a queue's
// completions to [Adapter.Complete].
type cqPool interface {
	// Attach returns a completion queue in which it has reserved room for entries
	// completions; d is nil for a direction whose completions are dropped.
	Attach(d *evd.Dispatcher, entries int) (hw.CQ, error)
	// Detach gives the room back.
	Detach(cq hw.CQ, entries int)
}

// AdapterConfig configures an Adapter. Only an interface adapter has a use for it,
// since [NewAdapter] takes a key that programs can't make.
type AdapterConfig struct {
	Device hw.Device
	CQs    cqPool // nil unless the device is polled
	// IA is the interface adapter that Query returns. The adapter refuses a
	// dispatcher that was made on another interface adapter, but not one that was
	// made on none. If IA is nil it refuses no dispatcher for this reason.
	IA any
	// Domain is the adapter's memory. The adapter refuses zones of another domain,
	// unless Domain is nil.
	Domain *mem.Domain
	// Async takes the asynchronous errors of endpoints and shared receive queues;
	// nil drops them. It outlives the adapter.
	Async *evd.Dispatcher
	// Broke is called with the cause when a connection has broken. The token's
	// holder calls it, so it must not block; nil means that nobody is told.
	Broke func(*hw.Cause)
	// Dropped is called as [hw.ListenConfig].OnDrop is; it may be nil.
	Dropped func(*hw.Cause)
	// Owner names what has an endpoint, given the endpoint's context, for [EndSnapshot]. It
	// must not block; nil means that nothing is named.
	Owner func(context any) string
}

// wiring returns the internal dispatcher behind d; nil for a nil d.
func wiring(d *evd.Dispatcher) *delivery.Dispatcher { return d.Wiring(door.Key{}) }

// wrap returns err with the name of the call that the program made.
func wrap(op string, err error) error { return line.Wrap(op, err) }
