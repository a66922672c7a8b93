package ep

import (
	"sync"
	"sync/atomic"

	"godat/hw/event"
)

// Counters say what has happened on an adapter since it was opened or its counters
// were last reset.
type Counters struct {
	Endpoints, EndpointsFreed         uint64 // made, and closed again
	ServicePoints, ServicePointsFreed uint64
	SRQs, SRQsFreed                   uint64

	Requests           uint64 // connection requests that were announced
	Accepted, Rejected uint64 // answers given to them

	Connects                              uint64 // attempts to connect
	ActiveEstablished, PassiveEstablished uint64
	PeerRejected, NonPeerRejected         uint64 // how attempts failed
	Unreachable, TimedOut, AcceptErrors   uint64
	Disconnected, Broken                  uint64 // how connections, and attempts given up, ended
}

// counters are the running counters of an adapter.
type counters struct {
	endpoints, endpointsFreed, points, pointsFreed atomic.Uint64
	srqs, srqsFreed                                atomic.Uint64
	requests, accepted, rejected, connects         atomic.Uint64
	activeEstablished, passiveEstablished          atomic.Uint64
	peerRejected, nonPeerRejected, unreachable     atomic.Uint64
	timedOut, acceptErrors, disconnected, broken   atomic.Uint64
}

// Counters returns the counters. It answers to dat_ib_query_counters, for an
// interface adapter.
func (a *Adapter) Counters() Counters { return a.counters.all((*atomic.Uint64).Load) }

// ResetCounters returns the counters and sets them to 0.
func (a *Adapter) ResetCounters() Counters { return a.counters.all(reset) }

func reset(c *atomic.Uint64) uint64 { return c.Swap(0) }

// all reads the counters.
func (c *counters) all(read func(*atomic.Uint64) uint64) Counters {
	return Counters{
		Endpoints: read(&c.endpoints), EndpointsFreed: read(&c.endpointsFreed),
		ServicePoints: read(&c.points), ServicePointsFreed: read(&c.pointsFreed),
		SRQs: read(&c.srqs), SRQsFreed: read(&c.srqsFreed),
		Requests: read(&c.requests), Accepted: read(&c.accepted), Rejected: read(&c.rejected),
		Connects: read(&c.connects), ActiveEstablished: read(&c.activeEstablished), PassiveEstablished: read(&c.passiveEstablished),
		PeerRejected: read(&c.peerRejected), NonPeerRejected: read(&c.nonPeerRejected),
		Unreachable: read(&c.unreachable), TimedOut: read(&c.timedOut), AcceptErrors: read(&c.acceptErrors),
		Disconnected: read(&c.disconnected), Broken: read(&c.broken),
	}
}

// of returns the counter of a connection event.
func (c *counters) of(n event.Number, passive bool) *atomic.Uint64 {
	switch n {
	case event.Established:
		if passive {
			return &c.passiveEstablished
		}
		return &c.activeEstablished
	case event.PeerRejected:
		return &c.peerRejected
	case event.NonPeerRejected:
		return &c.nonPeerRejected
	case event.Unreachable:
		return &c.unreachable
	case event.TimedOut:
		return &c.timedOut
	case event.AcceptCompletionError:
		return &c.acceptErrors
	case event.Disconnected:
		return &c.disconnected
	default:
		return &c.broken
	}
}

// EndpointCounters say what has happened on an endpoint since it was made or its
// counters were last reset: DAT_EP_COUNTERS.
type EndpointCounters struct {
	Connects    uint64 // connections that were established
	Disconnects uint64 // connections that ended, and attempts that failed
	Requests    uint64 // posted: sends, reads, writes, binds and atomics
	Receives    uint64 // posted
}

// counted is the part of an endpoint's counters that its queues do not hold.
type counted struct {
	connects, disconnects atomic.Uint64

	// mu guards rounds and skipped of both queues. A poster holds it while its
	// ticket wraps a tail, so a reader that holds it sees rounds and the tail that
	// belongs to them.
	mu sync.Mutex
}

// Counters returns the counters. It answers to dat_ib_query_counters, for an
// endpoint.
func (e *Endpoint) Counters() (EndpointCounters, error) {
	if err := alive("ep.Counters", e); err != nil {
		return EndpointCounters{}, err
	}
	e.counted.mu.Lock()
	defer e.counted.mu.Unlock()
	return e.counted.read(&e.box, (*atomic.Uint64).Load), nil
}

// ResetCounters returns the counters and sets them to 0.
func (e *Endpoint) ResetCounters() (EndpointCounters, error) {
	if err := alive("ep.ResetCounters", e); err != nil {
		return EndpointCounters{}, err
	}
	e.counted.mu.Lock()
	defer e.counted.mu.Unlock()
	c := e.counted.read(&e.box, reset)
	e.box.requests.skipped += c.Requests
	e.box.recvs.skipped += c.Receives
	return c, nil
}

// read reads the counters of the endpoint whose mailbox is b. The caller holds mu.
func (c *counted) read(b *mailbox, read func(*atomic.Uint64) uint64) EndpointCounters {
	w := b.token.Load()
	return EndpointCounters{
		Connects: read(&c.connects), Disconnects: read(&c.disconnects),
		Requests: b.requests.count(w), Receives: b.recvs.count(w),
	}
}

// count returns how many posts there were, given the word. The caller holds
// counted.mu.
func (q *queue) count(word uint64) uint64 {
	return q.rounds*(ticketMask+1) + uint64(q.tail(word)) - q.skipped
}
