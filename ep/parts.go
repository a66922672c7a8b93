package ep

import (
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
	"godat/mem"
)

// parts are what an endpoint is made of, and what it has taken of other objects for that.
type parts struct {
	pz                  *mem.PZ
	recv, request, conn *evd.Dispatcher
	attr                Attr
	feed                *feed // the shared receive queue's feed for recv
	device
}

// device is what an endpoint has taken of its device. On a polled device each
// direction has room in a completion queue: two places more than its depth, for its
// end and for a provider's own marker.
type device struct {
	qp hw.QP // nil without a zone
	cqs
}

// cqs are the completion queues of a polled device, and the room there.
type cqs struct {
	sendCQ, recvCQ     hw.CQ
	sendRoom, recvRoom int
}

// feeds returns the dispatchers in the order of first use, and what the endpoint feeds each with.
func (p *parts) feeds() (to []*evd.Dispatcher, with map[*evd.Dispatcher][]delivery.Feed) {
	with = make(map[*evd.Dispatcher][]delivery.Feed)
	for _, f := range [...]struct {
		d    *evd.Dispatcher
		feed delivery.Feed
	}{
		{p.recv, delivery.Feed{Streams: event.StreamDTO, Flags: p.attr.RecvFlags}},
		{p.request, delivery.Feed{Streams: event.StreamDTO, Flags: p.attr.RequestFlags}},
		{p.conn, delivery.Feed{Streams: event.StreamConnection}},
	} {
		if f.d == nil {
			continue
		}
		if with[f.d] == nil {
			to = append(to, f.d)
		}
		with[f.d] = append(with[f.d], f.feed)
	}
	return to, with
}

// modification is a Modify that is under way.
type modification struct {
	fields   fields
	old, now parts
	made     bool
}

// owed is a dispatcher that Modify took away while receives were posted that complete to it.
type owed struct {
	to    *evd.Dispatcher
	flags hw.Flags
}

// feed is what the endpoint feeds the dispatcher with.
func (o owed) feed() delivery.Feed { return delivery.Feed{Streams: event.StreamDTO, Flags: o.flags} }
