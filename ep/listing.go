package ep

import (
	"strings"

	"godat/hw"
)

// Snapshot describes what lives on an adapter, in no order. Each object is described by
// itself, at its own moment.
type Snapshot struct {
	Endpoints []EndpointSnapshot
	// FreedRequests and FreedReceives sum what endpoints counted that are freed.
	FreedRequests, FreedReceives QueueCounts

	Points      []PointSnapshot
	FreedPoints []PointSnapshot // their sums, by name
	SRQs        []SRQSnapshot
	Counters    Counters      // since the adapter was opened, whatever was reset
	Ends        []EndCount    // how connections ended
	LastEnds    []EndSnapshot // the last orderly ones and the last others, the oldest first
}

// PointSnapshot describes a service point at one moment, or has the sums of the closed ones of a name: that of
// String, or of the listener that had the point, or "others" of those beyond the first 64. All counts only grow.
type PointSnapshot struct {
	Name       string // as in String
	Kind       string // PSP, RSP or CSP
	Addr       string // where it listens
	Qual       uint64
	Dispatcher string // what gets the requests

	Backlog   int    // the most requests that may wait for an answer
	Waiting   int    // requests that wait for the program's answer
	Accepted  uint64 // answers of the program
	Rejected  uint64 // and of the library, when something closes
	HandedOff uint64
	Overflows uint64 // requests that the library rejected because as many waited as Backlog allows

	// Device has what the provider counts; nil if it counts nothing.
	Device *hw.ListenerCounts
}

// snapshot describes the service point now.
func (p *point) snapshot() PointSnapshot {
	s := PointSnapshot{
		Name: p.String(), Addr: p.addr().String(), Qual: p.qual(), Dispatcher: p.to.String(), Backlog: p.backlog,
	}
	s.Kind, _, _ = strings.Cut(s.Name, "(")
	if l, ok := p.listener.(hw.CountingListener); ok {
		c := l.Counts()
		s.Device = &c
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s.Waiting = p.waiting
	c := &p.counted
	s.Accepted, s.Rejected, s.HandedOff, s.Overflows = c.accepted, c.rejected, c.handedOff, c.overflows
	return s
}

// SRQSnapshot describes a shared receive queue at one moment.
type SRQSnapshot struct {
	Name        string // as in String
	Depth       int    // the most receives outstanding
	Outstanding int    // receives posted whose completion has not been delivered
	Endpoints   int    // that take from it
	Failed      bool   // the device gave the queue up
}

func (q *SRQ) snapshot() SRQSnapshot {
	q.mu.Lock()
	defer q.mu.Unlock()
	return SRQSnapshot{Name: q.String(), Depth: q.depth, Outstanding: q.used, Endpoints: q.users, Failed: q.failed}
}

// Endpoints are the endpoints that are not closed, in no order.
func (a *Adapter) Endpoints() []*Endpoint { return a.eps.list() }

// Snapshot describes what lives on the adapter now.
func (a *Adapter) Snapshot() Snapshot {
	s := Snapshot{Counters: a.counters.read((*counter).all)}
	endpoints, freed := a.counted()
	s.FreedRequests, s.FreedReceives = freed.requests, freed.recvs
	s.Endpoints = make([]EndpointSnapshot, len(endpoints))
	names := make(dispatcherNames)
	for i, e := range endpoints {
		s.Endpoints[i].describe(e, names)
	}
	points, ended := a.countedPoints()
	s.FreedPoints = ended
	for _, p := range points {
		s.Points = append(s.Points, p.snapshot())
	}
	for _, q := range a.srqs.list() {
		s.SRQs = append(s.SRQs, q.snapshot())
	}
	s.Ends, s.LastEnds = a.ends.snapshot()
	return s
}
