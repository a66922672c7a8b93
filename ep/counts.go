package ep

import (
	"slices"

	"godat/hw"
)

// QueueCounts are what the requests, or the receives, of one endpoint or of several came to.
type QueueCounts struct {
	Posted uint64
	Moved  []Moved // what succeeded, by the kind of operation
	// Failed counts operations that ended with an error, without those that were Flushed
	// because the connection ended.
	Failed, Flushed uint64
}

// Moved says how many operations of a kind succeeded, and how many octets they moved. Those of
// suppressed requests are known when a later request completes.
type Moved struct {
	Kind               string // as [hw.Op] names it
	Operations, Octets uint64
}

// succeeded is how many operations did.
func (c *QueueCounts) succeeded() (n uint64) {
	for i := range c.Moved {
		n += c.Moved[i].Operations
	}
	return n
}

// take adds what there is of a kind of operation.
func (c *QueueCounts) take(op hw.Op, m *moved) {
	if n := m.operations.Load(); n > 0 {
		c.Moved = append(c.Moved, Moved{Kind: op.String(), Operations: n, Octets: m.octets.Load()})
	}
}

// add adds the counts of another.
func (c *QueueCounts) add(other *QueueCounts) {
	c.Posted, c.Failed, c.Flushed = c.Posted+other.Posted, c.Failed+other.Failed, c.Flushed+other.Flushed
	for _, m := range other.Moved {
		i := slices.IndexFunc(c.Moved, func(own Moved) bool { return own.Kind == m.Kind })
		if i < 0 {
			c.Moved = append(c.Moved, m)
			continue
		}
		c.Moved[i].Operations += m.Operations
		c.Moved[i].Octets += m.Octets
	}
}

// clone is a copy that shares nothing.
func (c *QueueCounts) clone() QueueCounts {
	copied := *c
	copied.Moved = slices.Clone(c.Moved)
	return copied
}

// counts are the queue's, but for those of other operations, given its tail. The caller holds
// record.mu.
func (q *queue) counts(tail uint32) QueueCounts {
	t := q.tally()
	c := QueueCounts{Posted: t.posts(tail), Failed: t.failures.Load(), Flushed: t.flushes.Load()}
	c.take(q.plain, &q.moved)
	return c
}

// countOthers adds the operations that are not what their queue has most.
func (r *record) countOthers(requests, recvs *QueueCounts) {
	others := r.others.Load()
	if others == nil {
		return
	}
	for op := range others {
		to := requests
		if hw.Op(op) == hw.OpRecvInvalidate || hw.Op(op) == hw.OpRecvImm {
			to = recvs
		}
		to.take(hw.Op(op), &others[op])
	}
}

// freedCounts sum what endpoints counted that are freed.
type freedCounts struct{ requests, recvs QueueCounts }

// leave takes a freed endpoint from the adapter's list and adds its counts to those of the freed
// ones, in one step: each endpoint is in the list or in the sums, so no reader counts one twice
// or misses one.
func (a *Adapter) leave(e *Endpoint) {
	r, box := e.record, &e.box
	r.mu.Lock()
	w := box.token.Load()
	requests, recvs := box.requests.counts(box.requests.tail(w)), box.recvs.counts(box.recvs.tail(w))
	r.countOthers(&requests, &recvs)
	r.mu.Unlock()
	a.eps.mu.Lock()
	defer a.eps.mu.Unlock()
	delete(a.eps.all, e)
	a.freed.requests.add(&requests)
	a.freed.recvs.add(&recvs)
}

// counted returns the endpoints that are not freed, in no order, and the sums of the others.
func (a *Adapter) counted() (endpoints []*Endpoint, freed freedCounts) {
	a.eps.mu.Lock()
	defer a.eps.mu.Unlock()
	return a.eps.values(), freedCounts{a.freed.requests.clone(), a.freed.recvs.clone()}
}
