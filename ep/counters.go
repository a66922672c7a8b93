package ep

import (
	"sync"
	"sync/atomic"

	"godat/evd"
)

// Counters say what has happened on an adapter since it was opened.
type Counters struct {
	Endpoints, EndpointsFreed         uint64 // made, and closed again
	ServicePoints, ServicePointsFreed uint64

	Requests           uint64 // connection requests that were announced
	Accepted, Rejected uint64 // answers given to them

	Connects                              uint64 // attempts to connect
	ActiveEstablished, PassiveEstablished uint64
	PeerRejected, NonPeerRejected         uint64 // how attempts failed
	Unreachable, TimedOut, AcceptErrors   uint64
	Disconnected, Broken                  uint64 // how connections, and attempts given up, ended
}

// counters are those of an adapter, as they grow.
type counters struct {
	endpoints, endpointsFreed, points, pointsFreed atomic.Uint64
	requests, accepted, rejected, connects         atomic.Uint64
	activeEstablished, passiveEstablished          atomic.Uint64
	peerRejected, nonPeerRejected, unreachable     atomic.Uint64
	timedOut, acceptErrors, disconnected, broken   atomic.Uint64
}

// Counters tells what has happened. It answers to dat_ib_query_counters, for an
// interface adapter.
func (a *Adapter) Counters() Counters {
	c := &a.counters
	return Counters{
		Endpoints: c.endpoints.Load(), EndpointsFreed: c.endpointsFreed.Load(),
		ServicePoints: c.points.Load(), ServicePointsFreed: c.pointsFreed.Load(),
		Requests: c.requests.Load(), Accepted: c.accepted.Load(), Rejected: c.rejected.Load(),
		Connects: c.connects.Load(), ActiveEstablished: c.activeEstablished.Load(), PassiveEstablished: c.passiveEstablished.Load(),
		PeerRejected: c.peerRejected.Load(), NonPeerRejected: c.nonPeerRejected.Load(),
		Unreachable: c.unreachable.Load(), TimedOut: c.timedOut.Load(), AcceptErrors: c.acceptErrors.Load(),
		Disconnected: c.disconnected.Load(), Broken: c.broken.Load(),
	}
}

// of is the counter of a connection event.
func (c *counters) of(n evd.Number, passive bool) *atomic.Uint64 {
	switch n {
	case evd.Established:
		if passive {
			return &c.passiveEstablished
		}
		return &c.activeEstablished
	case evd.PeerRejected:
		return &c.peerRejected
	case evd.NonPeerRejected:
		return &c.nonPeerRejected
	case evd.Unreachable:
		return &c.unreachable
	case evd.TimedOut:
		return &c.timedOut
	case evd.AcceptCompletionError:
		return &c.acceptErrors
	case evd.Disconnected:
		return &c.disconnected
	default:
		return &c.broken
	}
}

// EndpointCounters say what has happened on an endpoint since it was made.
type EndpointCounters struct {
	Connects    uint64 // connections that were established
	Disconnects uint64 // those that ended, and attempts that failed
	Requests    uint64 // posted: sends, reads, writes, binds and atomics
	Receives    uint64 // posted
}

// counted is what an endpoint's counters need.
type counted struct {
	connects, disconnects atomic.Uint64

	// mu guards the posted and seen of both queues.
	mu sync.Mutex
}

// Counters tells what has happened. Posts are numbered modulo 2^30, and counted
// by what is new since the call before: call it at least that often. It answers to
// dat_ib_query_counters, for an endpoint.
func (e *Endpoint) Counters() (EndpointCounters, error) {
	if err := e.alive("ep.Counters"); err != nil {
		return EndpointCounters{}, err
	}
	c := &e.counted
	c.mu.Lock()
	defer c.mu.Unlock()
	w := e.word.Load()
	return EndpointCounters{
		Connects: c.connects.Load(), Disconnects: c.disconnects.Load(),
		Requests: e.requests.count(w), Receives: e.recvs.count(w),
	}, nil
}

// count counts the posts until now. counted.mu is held.
func (q *queue) count(word uint64) uint64 {
	tail := q.tail(word)
	q.posted += uint64((tail - q.seen) & ticketMask)
	q.seen = tail
	return q.posted
}
