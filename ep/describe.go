package ep

import (
	"fmt"

	"godat/internal/delivery"

	"godat/hw"
)

// String names the endpoint, with its state. It may be called at any time, as the
// String of every handle.
func (e *Endpoint) String() string {
	if e == nil {
		return "Endpoint(nil)"
	}
	return fmt.Sprintf("Endpoint(%p, %v)", e, e.State())
}

// name is String without the state.
func (e *Endpoint) name() string { return fmt.Sprintf("Endpoint(%p)", e) }

// String names the service point.
func (p *PSP) String() string { return fmt.Sprintf("PSP(%p)", p) }

// String names the service point.
func (r *RSP) String() string { return fmt.Sprintf("RSP(%p)", r) }

// String names the service point.
func (c *CSP) String() string { return fmt.Sprintf("CSP(%p)", c) }

// String names the request by the qualifier that it asked for.
func (c *CR) String() string {
	if c == nil {
		return "CR(nil)"
	}
	return fmt.Sprintf("CR(%p, for %d)", c, c.qual)
}

// String names the shared receive queue.
func (q *SRQ) String() string { return fmt.Sprintf("SRQ(%p)", q) }

// noRoom is the error of a post that found its dispatcher full. Error makes the
// text, not the post, because a poster may try again and again.
type noRoom struct {
	queue           string
	reserved, limit uint64
	endpoint        string
	requests, recvs uint32
}

func (n *noRoom) Error() string {
	return fmt.Sprintf("%s has no room for the event: QLen is %d, %d places are reserved or hold events; "+
		"%s has %d requests and %d receives outstanding", n.queue, n.limit, n.reserved, n.endpoint, n.requests, n.recvs)
}

// fullQueue returns the error of a post, or of the start of a connection, that
// found no room in to.
func fullQueue(e *Endpoint, op string, to *delivery.Queue) error {
	b := &e.box
	w := b.token.Load()
	n := &noRoom{
		queue: to.Name(), endpoint: e.String(),
		requests: (b.requests.tail(w) - b.requests.retired.Load()) & ticketMask,
		recvs:    (b.recvs.tail(w) - b.recvs.retired.Load()) & ticketMask,
	}
	n.reserved, n.limit = to.Places()
	return &hw.Error{Op: op, Type: hw.InsufficientResources, Sub: hw.ResourceTEVD, Err: n}
}
