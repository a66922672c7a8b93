package ep

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"godat/hw"
	"godat/internal/delivery"
)

// String names the endpoint, with its state. It may be called at any time, as the
// String of every handle.
func (e *Endpoint) String() string {
	if e == nil {
		return "Endpoint(nil)"
	}
	return fmt.Sprintf("Endpoint(%d, %v)", e.number, e.State())
}

// LogValue names the endpoint, its state and its addresses, for log/slog. It may be called at any
// time, as the LogValue of every handle.
func (e *Endpoint) LogValue() slog.Value {
	if e == nil {
		return slog.StringValue(e.String())
	}
	p := &e.profile
	p.mu.Lock()
	defer p.mu.Unlock()
	return slog.GroupValue(slog.String("name", e.name()), slog.String("state", e.State().String()),
		slog.String("local", p.local.String()), slog.String("remote", p.remote.String()))
}

// name is String without the state.
func (e *Endpoint) name() string { return fmt.Sprintf("Endpoint(%d)", e.number) }

// The numbers of handles: each has the next one of its kind in this process, from 1 on, so that a line of a
// log, a trouble and a row of a table are of the same handle. One that nothing made has 0.
var endpoints, points, requests, srqs, outboxes, credits atomic.Uint64

// name names a service point; kind is its type.
func (p *point) name(kind string) string {
	if p == nil {
		return kind + "(nil)"
	}
	return fmt.Sprintf("%s(%d)", kind, p.number)
}

// String names the service point.
func (p *PSP) String() string { return p.point().name("PSP") }

// LogValue is String, for log/slog.
func (p *PSP) LogValue() slog.Value { return slog.StringValue(p.String()) }

// String names the service point.
func (r *RSP) String() string { return r.point().name("RSP") }

// LogValue is String, for log/slog.
func (r *RSP) LogValue() slog.Value { return slog.StringValue(r.String()) }

// String names the service point.
func (c *CSP) String() string { return c.point().name("CSP") }

// LogValue is String, for log/slog.
func (c *CSP) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String names the request by the qualifier that it asked for.
func (c *CR) String() string {
	if c == nil {
		return "CR(nil)"
	}
	return fmt.Sprintf("CR(%d, for %d)", c.number, c.qual)
}

// LogValue is String, for log/slog.
func (c *CR) LogValue() slog.Value { return slog.StringValue(c.String()) }

// String names the shared receive queue.
func (q *SRQ) String() string {
	if q == nil {
		return "SRQ(nil)"
	}
	return fmt.Sprintf("SRQ(%d)", q.number)
}

// LogValue is String, for log/slog.
func (q *SRQ) LogValue() slog.Value { return slog.StringValue(q.String()) }

// noRoom is the error of a post that found its dispatcher full. Error makes the text, because a
// poster may try again and again.
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

// fullQueue returns the error of a post, or of a connection's start, that found no room in to.
func fullQueue(e *Endpoint, op string, to *delivery.Queue) error {
	n := &noRoom{
		queue: to.Name(), endpoint: e.String(),
		requests: e.box.Requests.Outstanding(), recvs: e.box.Recvs.Outstanding(),
	}
	n.reserved, n.limit = to.Places()
	return &hw.Error{Op: op, Type: hw.InsufficientResources, Sub: hw.ResourceTEVD, Err: n}
}
