package ep

import (
	"errors"

	"godat/ep/internal/line"
	"godat/hw"
	"godat/internal/door"
	"godat/internal/keys"
)

// Adapter is what the endpoints and service points of one interface adapter
// share: the device, and the table by which completions find their endpoint.
type Adapter struct{ pointRegistry }

// NewAdapter makes an adapter without endpoints. An interface adapter has one;
// programs call the interface adapter.
func NewAdapter(_ door.Key, cfg AdapterConfig) *Adapter {
	a := new(Adapter)
	a.cfg, a.attr = cfg, cfg.Device.Attr()
	a.endpoints = keys.New[*Endpoint](a.attr.MaxQPs)
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
