package runtime

import (
	"cmp"
	"slices"
	"time"

	"godat/ep"
	"godat/evd"
	"godat/internal/door"
	"godat/mem"
)

// Snapshot describes an adapter and all that lives on it, for people and for programs that
// watch. Each object is described at its own moment; the numbers of one object belong
// together. All counts only grow, whatever was reset. It has no payload and no private data.
type Snapshot struct {
	At               time.Time
	Adapter          string // the name that the adapter was opened by
	Provider, Device string // as in Attr

	Conns       []ConnSnapshot        // by ID
	Endpoints   []ep.EndpointSnapshot // those of no Conn, by name
	Dispatchers []evd.DispatcherSnapshot
	Listeners   []ListenerSnapshot // and service points that the program made
	SRQs        []ep.SRQSnapshot
	Pools       []mem.PoolSnapshot // of buffers, those of no Conn
	// Reports has what the program and the library's packages add; see [IA.Report].
	Reports  map[string][]any
	Ends     []ep.EndCount    // how connections ended
	LastEnds []ep.EndSnapshot // the last orderly ones and the last others, the oldest first

	Counters Counters // since the adapter was opened
	// Polls says how the device's completions were noticed, by polls or by sleeps; nil for a
	// device whose completions come in the calls that post, as loop's do.
	Polls  *PollSnapshot
	Freed  FreedCounts
	Memory mem.Stats
}

// FreedCounts sum what objects of an adapter counted that are closed now. Added to the counts of
// those that a snapshot describes, they make sums that only grow, whatever closes.
type FreedCounts struct {
	Requests, Receives ep.QueueCounts         // of endpoints
	Dispatchers        evd.Counters           // events that came, were taken and were lost
	Refused            uint64                 // posts that found no room in a dispatcher
	Listeners          []ep.PointSnapshot     // of listeners and service points, by name: at most 64 and "others"
	Latency            *evd.HistogramSnapshot // of dispatchers: how long requests took
}

// takeDispatcher adds what a closed dispatcher counted.
func (f *FreedCounts) takeDispatcher(d *evd.Dispatcher) {
	s := wiring(d).Snapshot()
	f.Dispatchers.Events += s.Counters.Events
	f.Dispatchers.Taken += s.Counters.Taken
	f.Dispatchers.Lost += s.Counters.Lost
	f.Dispatchers.Sleeps += s.Counters.Sleeps
	f.Refused += s.Refused
}

// ConnSnapshot describes a [Conn] at one moment.
type ConnSnapshot struct {
	ID       uint64
	Name     string // as in String
	Listener string // the listener that made it; empty if it was dialed by the adapter
	Depth    int
	Message  int // bytes
	// Missing counts the receives that are not posted now, of Depth and some more. They are
	// posted when the program has taken more messages, or given buffers back.
	Missing int
	Ending  bool // Shutdown or Close has begun
	// HookAge is for how long a hook of the program's, Established or Ended, has run; 0 if none does.
	HookAge  time.Duration
	Endpoint ep.EndpointSnapshot
	Buffers  mem.PoolSnapshot // empty with ConnConfig.OwnReceives
}

// ListenerSnapshot describes a [Listener] at one moment, or a service point that the program
// made.
type ListenerSnapshot struct {
	ep.PointSnapshot
	// Conns has a place for each connection, of which some are Taken. Both are 0 for a
	// service point of the program's.
	Conns, Taken int
	// NoPlace is how often a connection, accepted or dialed, found no place; a peer that did is among Rejected.
	NoPlace uint64
}

// Snapshot describes the adapter now. It stops nothing: it takes no lock that a post, a
// completion or a delivery takes. Its work is bounded by what lives on the adapter, some
// microseconds for each object. A closed adapter is INVALID_HANDLE/IA.
func (ia *IA) Snapshot() (Snapshot, error) {
	s, err := ia.describe()
	if err != nil {
		return Snapshot{}, err
	}
	// The functions of the program's may do what they like: nothing is held meanwhile.
	for i := range s.Endpoints {
		if c, ok := s.Endpoints[i].Context.(Describer); ok {
			s.Endpoints[i].Owner = contained(c.DescribeEndpoint)
		}
	}
	s.Reports = ia.reports.call()
	return s, nil
}

// describe is Snapshot without what functions of the program's say.
func (ia *IA) describe() (Snapshot, error) {
	if err := ia.enter("runtime.IA.Snapshot"); err != nil {
		return Snapshot{}, err
	}
	defer ia.gate.RUnlock()
	s := Snapshot{
		At: time.Now(), Adapter: ia.name, Provider: ia.attr.Provider, Device: ia.attr.Device,
		Memory: ia.domain.Stats(),
	}
	below := ia.adapter.Snapshot()
	s.SRQs, s.Ends, s.LastEnds = below.SRQs, below.Ends, below.LastEnds
	own := s.takeEndpoints(below.Endpoints)
	s.Pools = ia.domain.Pools(own)
	l := &ia.lists
	l.mu.Lock()
	made, freed := l.dispatchers.counts() // drops the closed ones
	dispatchers, listeners := l.dispatchers.list(), l.listeners.list()
	s.Freed = l.freed
	took := evd.NewHistogram()
	took.Add(&l.took)
	l.mu.Unlock()
	s.Freed.Requests, s.Freed.Receives = below.FreedRequests, below.FreedReceives
	s.Freed.Listeners = below.FreedPoints
	if ia.async.to != nil {
		dispatchers = append(dispatchers, ia.async.to)
	}
	s.Polls = ia.describePolls()
	s.describeDispatchers(dispatchers, took)
	s.nameAsync(ia.async)
	s.Freed.Latency = took.Snapshot()
	s.Listeners = describeListeners(below.Points, listeners)
	s.Counters = Counters{
		Counters: below.Counters, Memory: ia.domain.AllCounters(), Dispatchers: made, DispatchersFreed: freed, Async: ia.async.allCounters(),
	}
	return s, nil
}

// takeEndpoints describes the connections among endpoints. It returns
// the pools of the connections. It sorts what is short, since a description is not.
func (s *Snapshot) takeEndpoints(endpoints []ep.EndpointSnapshot) (own map[*mem.BufferPool]bool) {
	type owned struct {
		id uint64 // the connection's
		e  *ep.EndpointSnapshot
	}
	var conns []owned
	var others []*ep.EndpointSnapshot
	for i := range endpoints {
		if c, ok := endpoints[i].Context.(*Conn); ok {
			conns = append(conns, owned{c.id, &endpoints[i]})
		} else {
			others = append(others, &endpoints[i])
		}
	}
	slices.SortFunc(conns, func(a, b owned) int { return cmp.Compare(a.id, b.id) })
	slices.SortFunc(others, func(a, b *ep.EndpointSnapshot) int { return cmp.Compare(a.Name, b.Name) })
	own = make(map[*mem.BufferPool]bool, len(conns))
	names := make(map[*Listener]string)
	s.Conns = make([]ConnSnapshot, len(conns))
	for i, of := range conns {
		c := of.e.Context.(*Conn)
		own[c.pool] = true
		s.Conns[i].describe(c, names)
		s.Conns[i].Endpoint = *of.e
	}
	s.Endpoints = make([]ep.EndpointSnapshot, len(others))
	for i, e := range others {
		s.Endpoints[i] = *e
	}
	return own
}

// describe describes a connection, but for its endpoint. names has the listeners whose names
// are known.
func (s *ConnSnapshot) describe(c *Conn, names map[*Listener]string) {
	s.ID, s.Name, s.Depth, s.Message, s.Missing, s.Ending = c.id, c.peer, c.cfg.Depth, c.cfg.Message, int(c.missing.Load()), c.refuses.Load()
	if l := c.listener; l != nil {
		if names[l] == "" {
			names[l] = l.String()
		}
		s.Listener = names[l]
	}
	if h := c.hook.Load(); h != nil {
		s.HookAge = h.age()
	}
	if c.pool != nil {
		s.Buffers = c.pool.Snapshot()
	}
}

// describeDispatchers describes those that are open, by name. One that has been closed since it
// was listed counts among the freed.
func (s *Snapshot) describeDispatchers(dispatchers []*evd.Dispatcher, took *evd.Histogram) {
	s.Dispatchers = make([]evd.DispatcherSnapshot, 0, len(dispatchers))
	for _, d := range dispatchers {
		if isOpen(d) {
			s.Dispatchers = append(s.Dispatchers, d.Snapshot())
		} else {
			s.Freed.takeDispatcher(d)
			d.AddLatency(door.Key{}, took)
		}
	}
	slices.SortFunc(s.Dispatchers, func(a, b evd.DispatcherSnapshot) int { return cmp.Compare(a.Name, b.Name) })
}

// nameAsync says which dispatcher is the one that the adapter has made for errors of the device.
func (s *Snapshot) nameAsync(a *asyncErrors) {
	for i := range s.Dispatchers {
		if d := &s.Dispatchers[i]; a.own && d.Name == a.to.String() {
			d.Owner = "asynchronous errors"
		}
	}
}

// describeListeners adds to the service points what their listeners know.
func describeListeners(points []ep.PointSnapshot, listeners []*Listener) []ListenerSnapshot {
	of := make(map[string]*Listener, len(listeners))
	for _, l := range listeners {
		of[l.psp.Load().String()] = l
	}
	list := make([]ListenerSnapshot, len(points))
	for i, p := range points {
		list[i].PointSnapshot = p
		if l := of[p.Name]; l != nil {
			list[i].Name = l.String()
			list[i].Conns, list[i].Taken, list[i].NoPlace = l.places()
		}
	}
	slices.SortFunc(list, func(a, b ListenerSnapshot) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// places returns how many connections the listener may have, how many it has, and how often there was no place.
func (l *Listener) places() (conns, taken int, noPlace uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cfg.Conns, l.taken, l.noRoom
}

// ownerOf names the connection that has an endpoint with that context.
func ownerOf(context any) string {
	if c, ok := context.(*Conn); ok {
		return c.String()
	}
	return ""
}
