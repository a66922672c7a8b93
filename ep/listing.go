package ep

// Snapshot describes what lives on an adapter, in no order. Each object is described by
// itself, at its own moment.
type Snapshot struct {
	Endpoints []EndpointSnapshot
	Points    []PointSnapshot
	SRQs      []SRQSnapshot
	Counters  Counters      // since the adapter was opened, whatever was reset
	Ends      []EndCount    // how connections ended
	LastEnds  []EndSnapshot // the last of them, the oldest first
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
	endpoints := a.eps.list()
	s.Endpoints = make([]EndpointSnapshot, len(endpoints))
	names := make(dispatcherNames)
	for i, e := range endpoints {
		s.Endpoints[i].describe(e, names)
	}
	for _, p := range a.points.list() {
		s.Points = append(s.Points, p.snapshot())
	}
	for _, q := range a.srqs.list() {
		s.SRQs = append(s.SRQs, q.snapshot())
	}
	s.Ends, s.LastEnds = a.ends.snapshot()
	return s
}
