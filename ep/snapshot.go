package ep

import (
	"time"

	"godat/ep/internal/line"
	"godat/evd"
)

// EndpointSnapshot describes an endpoint at one moment. All counts only grow, and no
// [Endpoint.ResetCounters] changes them.
type EndpointSnapshot struct {
	Name  string // as in String, without the state
	State string
	// Local and Remote are the addresses, empty while they are not known. They stay when the
	// connection ends, until Reset.
	Local, Remote string
	// Made is when the endpoint was made, Connected when its last connection was
	// established; it is zero if there was none.
	Made, Connected time.Time
	Connects        uint64 // connections that were established
	Disconnects     uint64 // connections that ended, and attempts that failed
	Traceable       bool   // the device can trace connections; see [Endpoint.Trace]

	// Silence is for how long the peer has not answered what the device asked of it: 0 if it
	// answers, or was not asked. iwarp asks a peer of its own kind that says nothing; see the
	// parameter keepalive of godat/hw/iwarp.
	Silence time.Duration
	// With Silence, PeerAcknowledges says that the peer's system acknowledges what is sent, as that of a process does
	// which is stopped or stuck; PeerLost says that it acknowledges nothing, as where the network is cut or the host is
	// down. Neither is set where the transport does not tell; see [Endpoint.Flow].
	PeerAcknowledges, PeerLost bool

	Requests, Receives QueueSnapshot
	// Recv, Request and Conn name the dispatchers; SRQ names the shared receive queue.
	Recv, Request, Conn, SRQ string

	// Story is what happened last, the oldest first.
	Story []StoryLine
	// Cause is why the connection ends or has ended; nil before.
	Cause *CauseSnapshot
	// Owner is what the endpoint's Context says of itself, for an adapter's snapshot; nil if it
	// says nothing.
	Owner any
	// Context is what the program gave the endpoint as [Config.Context].
	Context any `json:"-"`
	// Endpoint is the endpoint that the snapshot describes, for a reader who wants to trace it.
	Endpoint *Endpoint `json:"-"`
}

// QueueSnapshot describes the requests or the receives of an endpoint.
type QueueSnapshot struct {
	QueueCounts     // since the endpoint was made
	Depth       int // the most that may be outstanding
	Outstanding int // of the posted ones, how many have not completed; for receives those that wait for a message
	// OldestAge is for how long the oldest operation has been outstanding, at least: since the
	// first snapshot in which it was the oldest, where OldestAge is 0. It is 0, too, while all that
	// are outstanding are suppressed requests of which the device reports nothing before a later
	// request completes: they may have succeeded long ago. OldestCookie is the oldest operation's
	// cookie, valid if OldestAge is not 0.
	OldestAge    time.Duration
	OldestCookie uint64
	// QuietAge is for how long at least nothing has succeeded: since the first snapshot with the
	// same operations in Moved.
	QuietAge time.Duration
}

// Snapshot describes the endpoint now. It takes no lock that a post or a completion takes,
// except once in 2^24 posts. That of a nil endpoint is empty.
func (e *Endpoint) Snapshot() EndpointSnapshot {
	if !e.isMade() {
		return EndpointSnapshot{}
	}
	var s EndpointSnapshot
	s.describe(e, make(dispatcherNames))
	return s
}

// describe is Snapshot, with the names of dispatchers that are known already.
func (s *EndpointSnapshot) describe(e *Endpoint, names dispatcherNames) {
	e.box.Settle()
	s.Name, s.Context, s.Endpoint, s.Traceable = e.name(), e.context, e, e.adapter.traces.Load()
	e.profile.describe(s, names)
	requests, recvs := e.record.describe(e, s)
	if s.Silence > 0 {
		f, _ := e.Flow()
		s.PeerAcknowledges, s.PeerLost = f.Acknowledged, f.Lost
	}
	s.Requests.nameOldest(&e.box.Requests, requests)
	s.Receives.nameOldest(&e.box.Recvs, recvs)
	s.Cause = describeCause(e.cause.Load())
	if q := e.srq; q != nil {
		s.SRQ = q.String()
	}
}

// describe adds what the profile has.
func (p *profile) describe(s *EndpointSnapshot, names dispatcherNames) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.State = stateIn(p.box).String()
	s.Local, s.Remote = p.local.String(), p.remote.String()
	s.Recv, s.Conn = names.of(p.box.Recvs.Rules().EVD), names.of(p.conn)
	s.Request = names.of(p.box.Requests.Rules().EVD)
	s.Requests.Depth, s.Receives.Depth = p.attr.MaxRequestDTOs, p.attr.MaxRecvDTOs
}

// dispatcherNames are the names of dispatchers, of which many endpoints share one.
type dispatcherNames map[*evd.Dispatcher]string

// of is the name of a dispatcher; empty if there is none.
func (n dispatcherNames) of(d *evd.Dispatcher) string {
	if d == nil {
		return ""
	}
	name, known := n[d]
	if !known {
		name = d.String()
		n[d] = name
	}
	return name
}

// describe adds what the record and the queues have, and returns the oldest operations' tickets.
func (r *record) describe(e *Endpoint, s *EndpointSnapshot) (requests, recvs uint32) {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	s.Made = r.made
	if r.since != 0 {
		s.Connected = r.made.Add(r.since)
	}
	if e.State() == Connected {
		s.Silence = time.Duration(r.silence.Load())
	}
	s.Connects, s.Disconnects = r.connects.all(), r.disconnects.all()
	s.Story = r.story.lines()
	now := time.Now()
	requests, recvs = s.Requests.describe(&e.box.Requests, &r.oldest[0], now), s.Receives.describe(&e.box.Recvs, &r.oldest[1], now)
	if r.quiets == nil {
		r.quiets = new([2]look)
	}
	s.Requests.QuietAge = r.quiets[0].age(s.Requests.succeeded(), now)
	s.Receives.QuietAge = r.quiets[1].age(s.Receives.succeeded(), now)
	return requests, recvs
}

// describe adds what a queue has, and returns the ticket of its oldest operation. The caller holds record.Mu.
func (s *QueueSnapshot) describe(q *line.Queue, seen *look, now time.Time) (oldest uint32) {
	counts := q.Counts()
	s.QueueCounts.take(q, counts)
	s.Outstanding = int(counts.Outstanding)
	if s.Outstanding > 0 && !counts.Unreported {
		s.OldestAge = seen.age(s.Posted-uint64(s.Outstanding), now)
	} else {
		*seen = look{}
	}
	return counts.Oldest
}

// nameOldest adds the cookie of the oldest operation. The caller does not hold record.Mu,
// which Grow takes under the queue's mutex.
func (s *QueueSnapshot) nameOldest(q *line.Queue, ticket uint32) {
	if s.OldestAge != 0 {
		s.OldestCookie = q.Cookie(ticket)
	}
}
