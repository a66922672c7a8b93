package ep

import (
	"godat/internal/door"
	"godat/internal/yield"
)

// PostRecvAgain posts the next n receives as the receives were that had their slots before:
// with the same cookies, and one segment each at the same place, of so many bytes. It is for
// package stream, of whose receives each has a slot of its own. It checks no segments: they
// were checked when they were posted first, and the device checks their keys whenever it
// uses them.
//
// It returns false, and nothing has happened, if something else than a plain post is to be
// done; then the caller uses [Endpoint.PostRecvBatch].
//
// The caller posts all receives of the endpoint, one call at a time, as many as the ring has
// slots at first, and has seen the completion of each one that it posts again. Completions
// of receives go to a sink.
func (e *Endpoint) PostRecvAgain(_ door.Key, n, length uint32) bool {
	b := &e.box
	q := &b.recvs
	if b.direct == nil || b.state.Load() != uint32(Connected) {
		return false
	}
	yield.Point()
	w := b.takePlain(q, nil, uint64(n)<<recvShift, n)
	if w == noTicket {
		return false
	}
	ticket := q.tail(w)
	for i := range n {
		q.slot(ticket + i).sge[0].Len = length // keep has overwritten it
	}
	run{b, q, ticket, n}.handRecvs(w)
	return true
}
