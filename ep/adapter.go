package ep

import (
	"errors"
	"maps"
	"slices"
	"sync"

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
	dev  hw.Device
	attr hw.Attr
	cqs  CQPool
	ia   any

	domain *mem.Domain     // nil: zones are not checked
	async  *evd.Dispatcher // nil: errors of objects are dropped
	broke  func(*hw.Cause)

	endpoints *keys.Table[*Endpoint]
	counters  counters

	mu     sync.Mutex
	eps    map[*Endpoint]struct{}
	qps    map[hw.QP]*Endpoint
	points map[*point]struct{}
	srqs   map[hw.SRQ]*SRQ
	crs    map[*CR]struct{} // not answered yet
}

// CQPool lends completion queues on a polled device. Completions of a queue that
// was attached for a dispatcher are handed to [Adapter.Complete] by one goroutine
// at a time.
type CQPool interface {
	// Attach finds room for entries completions; d is nil for a direction whose
	// completions are dropped.
	Attach(d *evd.Dispatcher, entries int) (hw.CQ, error)
	// Detach gives the room back.
	Detach(cq hw.CQ, entries int)
}

// AdapterConfig configures an Adapter.
type AdapterConfig struct {
	Device hw.Device
	CQs    CQPool // nil unless the device is polled
	// IA is what queries give for the interface adapter. Dispatchers that were made
	// on another one are refused; with nil, and those made on none, are not.
	IA any
	// Domain is the adapter's memory: zones of another one are refused. With nil
	// they are not.
	Domain *mem.Domain
	// Async takes the asynchronous errors of endpoints and shared receive queues;
	// nil drops them. It outlives the adapter.
	Async *evd.Dispatcher
	// Broke hears why a connection broke. It must not block; nil is none.
	Broke func(*hw.Cause)
}

// NewAdapter makes an adapter without endpoints. An interface adapter has one;
// programs call the interface adapter.
func NewAdapter(_ door.Key, cfg AdapterConfig) *Adapter {
	attr := cfg.Device.Attr()
	return &Adapter{
		dev: cfg.Device, attr: attr, cqs: cfg.CQs, ia: cfg.IA, domain: cfg.Domain, async: cfg.Async, broke: cfg.Broke,
		endpoints: keys.New[*Endpoint](attr.MaxQPs),
		eps:       make(map[*Endpoint]struct{}),
		qps:       make(map[hw.QP]*Endpoint),
		points:    make(map[*point]struct{}),
		srqs:      make(map[hw.SRQ]*SRQ),
		crs:       make(map[*CR]struct{}),
	}
}

// key gives an endpoint that is being made the key by which completions find it.
func (a *Adapter) key(e *Endpoint) (uint32, error) {
	key, _, err := a.endpoints.Insert(func(uint32) *Endpoint { return e })
	if err != nil {
		return 0, hw.Errorf("", hw.InsufficientResources, hw.ResourceTEP, "%w", err)
	}
	return key, nil
}

// add enters an endpoint that is complete.
func (a *Adapter) add(e *Endpoint) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.eps[e] = struct{}{}
	a.counters.endpoints.Add(1)
}

func (a *Adapter) remove(e *Endpoint) {
	a.endpoints.Remove(e.key)
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.eps, e)
	a.counters.endpointsFreed.Add(1)
}

// newQP makes a queue pair for an endpoint.
func (a *Adapter) newQP(e *Endpoint, cfg hw.QPConfig) (hw.QP, error) {
	qp, err := a.dev.NewQP(cfg)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.qps[qp] = e
	return qp, nil
}

func (a *Adapter) removeQP(qp hw.QP) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.qps, qp)
}

// OfQP is the endpoint that owns a queue pair of the device, for errors that the
// device reports of it; nil when there is none. It may be called from any
// goroutine.
func (a *Adapter) OfQP(qp hw.QP) *Endpoint {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.qps[qp]
}

func (a *Adapter) addSRQ(q *SRQ) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.srqs[q.hw] = q
	a.counters.srqs.Add(1)
}

func (a *Adapter) removeSRQ(q *SRQ) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.srqs, q.hw)
	a.counters.srqsFreed.Add(1)
}

// FailSRQ tells the shared receive queue behind the device's that the device gave
// it up, and returns it; nil when there is none. It may be called from any
// goroutine.
func (a *Adapter) FailSRQ(device hw.SRQ) *SRQ {
	a.mu.Lock()
	q := a.srqs[device]
	a.mu.Unlock()
	if q != nil {
		q.fail()
	}
	return q
}

// Len counts the endpoints, shared receive queues and service points that are not
// closed.
func (a *Adapter) Len() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.eps) + len(a.srqs) + len(a.points)
}

// Close closes the service points, rejects the requests that nobody has answered
// and closes the endpoints, then the shared receive queues, as an abrupt close of
// the interface adapter does. Its caller has made sure that no call that makes
// something is under way, or comes.
//
// Each step takes its list after the one before: a point's close waits for the
// requests on their way in, and those bring endpoints along. Objects leave these
// lists when they are closed, so what the program is about to close is waited for.
// What can't be closed stays for the next Close.
func (a *Adapter) Close() error {
	var errs []error
	for _, p := range list(a, a.points) {
		errs = append(errs, p.self.Close())
	}
	for _, c := range list(a, a.crs) {
		c.decline()
	}
	for _, e := range list(a, a.eps) {
		errs = append(errs, e.Close())
	}
	a.mu.Lock()
	srqs := slices.Collect(maps.Values(a.srqs))
	a.mu.Unlock()
	for _, q := range srqs {
		errs = append(errs, q.Close())
	}
	return errors.Join(errs...)
}

// list is what is in one of the adapter's sets now.
func list[T comparable](a *Adapter, set map[T]struct{}) []T {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Collect(maps.Keys(set))
}

// Complete hands polled completions on to the queues that their ids name. Those
// of an endpoint that is gone are dropped.
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

func (a *Adapter) queue(wc *hw.WC) *queue {
	kind, key := kindOf(wc.ID), idKey(wc.ID)
	if kind == kindShared {
		key = wc.QP
	}
	e := a.endpoints.Lookup(key)
	if e == nil {
		return nil
	}
	switch kind {
	case kindRequest, kindRequestEnd:
		return &(*e).box.requests
	case kindRecv, kindRecvEnd, kindShared:
		return &(*e).box.recvs
	}
	return nil
}
