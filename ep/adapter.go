package ep

import (
	"errors"
	"sync"
	"sync/atomic"

	"godat/ep/internal/line"
	"godat/evd"
	"godat/hw"
	"godat/internal/door"
	"godat/internal/keys"
	"godat/mem"
)

// Adapter is what the endpoints and service points of one interface adapter
// share: the device, and the table by which completions find their endpoint.
type Adapter struct {
	// Immutable after NewAdapter.
	cfg       AdapterConfig
	attr      hw.Attr // the device's
	endpoints *keys.Table[*Endpoint]

	counters counters
	latency  latency
	ends     ends
	crew     line.Crew
	traces   atomic.Bool    // the device's queue pairs are hw.Tracers; newDevice writes it
	alarms   sync.WaitGroup // set, or going off now

	// An object that nothing else names is listed under itself.
	eps    table[*Endpoint, *Endpoint]
	freed  freedCounts // under eps.mu
	qps    table[hw.QP, *Endpoint]
	points table[*point, *point]
	ended  endedPoints
	srqs   table[hw.SRQ, *SRQ]
	crs    table[*CR, *CR] // not answered yet
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

// NewAdapter makes an adapter without endpoints. An interface adapter has one;
// programs call the interface adapter.
func NewAdapter(_ door.Key, cfg AdapterConfig) *Adapter {
	attr := cfg.Device.Attr()
	a := &Adapter{cfg: cfg, attr: attr, endpoints: keys.New[*Endpoint](attr.MaxQPs)}
	a.crew.Start()
	return a
}

// OfQP returns the endpoint that owns a queue pair of the device, or nil. A device reports
// its errors by queue pair. It may be called from any goroutine.
func (a *Adapter) OfQP(qp hw.QP) *Endpoint { return a.qps.get(qp) }

// FailSRQ marks the shared receive queue on the device's queue, which the device gave up, as
// failed, and returns it; nil when there is none. It may be called from any goroutine.
func (a *Adapter) FailSRQ(device hw.SRQ) *SRQ {
	q := a.srqs.get(device)
	if q != nil {
		q.fail()
	}
	return q
}

// Len counts the endpoints, shared receive queues and service points that are not
// closed. It counts the points first: a request brings an endpoint, and the point may close then.
func (a *Adapter) Len() int { return a.points.len() + a.eps.len() + a.srqs.len() }

// Close does the work of an abrupt close of the interface adapter: it closes service points,
// rejects requests without an answer, and closes endpoints and shared receive queues. The
// caller makes sure that no call that makes an object is under way or begins.
//
// Close reads a list when it has closed the objects of the list before: a service point's
// close waits for the requests on their way in, which bring endpoints along. An object leaves
// its list at the end of its close, so Close also waits for a close that the program has
// begun. What can't be closed stays listed for the next Close.
func (a *Adapter) Close() error {
	var errs []error
	for _, p := range a.points.list() {
		errs = append(errs, p.self.Close())
	}
	for _, c := range a.crs.list() {
		c.decline()
	}
	for _, e := range a.eps.list() {
		errs = append(errs, e.Close())
	}
	for _, q := range a.srqs.list() {
		errs = append(errs, q.Close())
	}
	err := errors.Join(errs...)
	if err == nil {
		a.alarms.Wait()
		a.crew.Stop()
	}
	return err
}

// Counters returns the counters. It answers to dat_ib_query_counters, for an interface adapter.
func (a *Adapter) Counters() Counters { return a.counters.read((*counter).since) }

// ResetCounters returns the counters and sets them to 0.
func (a *Adapter) ResetCounters() Counters { return a.counters.read((*counter).reset) }

// Complete hands polled completions to the queues that their ids name. It drops the
// completions of an endpoint that is gone.
func (a *Adapter) Complete(wcs []hw.WC) {
	for i := 0; i < len(wcs); {
		q := a.queue(&wcs[i])
		j := i + 1
		for j < len(wcs) && a.queue(&wcs[j]) == q {
			j++
		}
		if q != nil {
			q.Complete(wcs[i:j])
		}
		i = j
	}
}

func (a *Adapter) queue(wc *hw.WC) *line.Queue {
	kind, key := kindOf(wc.ID), idKey(wc.ID)
	if kind == kindShared {
		key = wc.QP
	}
	e := a.endpoints.Lookup(key)
	if e == nil {
		return nil
	}
	switch kind {
	case kindRequest, kindRequestEnd, kindMark:
		return &(*e).box.Requests
	case kindRecv, kindRecvEnd, kindShared:
		return &(*e).box.Recvs
	}
	return nil
}
