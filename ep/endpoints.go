package ep

import (
	"godat/hw"
	"godat/internal/keys"
)

// endpointRegistry has the endpoints of an adapter.
type endpointRegistry struct {
	srqRegistry
	endpoints *keys.Table[*Endpoint] // by the key in the ids of their completions; immutable
	eps       table[*Endpoint, *Endpoint]
	freed     freedCounts // under eps.mu
	qps       table[hw.QP, *Endpoint]
}

// leave takes a freed endpoint from the adapter's list and adds its counts to those of the freed
// ones, in one step: each endpoint is in the list or in the sums, so no reader counts one twice
// or misses one.
func (a *endpointRegistry) leave(e *Endpoint) {
	var requests, recvs QueueCounts
	e.record.Mu.Lock()
	requests.take(&e.box.Requests, e.box.Requests.Counts())
	recvs.take(&e.box.Recvs, e.box.Recvs.Counts())
	e.record.Mu.Unlock()
	a.eps.mu.Lock()
	defer a.eps.mu.Unlock()
	delete(a.eps.all, e)
	a.freed.requests.add(&requests)
	a.freed.recvs.add(&recvs)
}

// counted returns the endpoints that are not freed, in no order, and the sums of the others.
func (a *endpointRegistry) counted() (endpoints []*Endpoint, freed freedCounts) {
	a.eps.mu.Lock()
	defer a.eps.mu.Unlock()
	return a.eps.values(), freedCounts{a.freed.requests.clone(), a.freed.recvs.clone()}
}
