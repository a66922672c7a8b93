package ep

import (
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

// counter only grows. A reset remembers how far it had come, and leaves the whole count.
type counter struct{ whole, before atomic.Uint64 }

// since is the count since the last reset.
func (c *counter) since() uint64 {
	before := c.before.Load() // first, because whole may grow meanwhile
	return c.whole.Load() - before
}

// reset is since, and begins anew.
func (c *counter) reset() uint64 {
	for {
		before := c.before.Load()
		now := c.whole.Load()
		if c.before.CompareAndSwap(before, now) {
			return now - before
		}
	}
}

// all is the count since the beginning.
func (c *counter) all() uint64 { return c.whole.Load() }

type counters struct {
	endpoints, endpointsFreed, points, pointsFreed counter
	srqs, srqsFreed                                counter
	requests, accepted, rejected, connects         counter
	activeEstablished, passiveEstablished          counter
	peerRejected, nonPeerRejected, unreachable     counter
	timedOut, acceptErrors, disconnected, broken   counter
}

func (c *counters) read(read func(*counter) uint64) Counters {
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
func (c *counters) of(n event.Number, passive bool) *counter {
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
