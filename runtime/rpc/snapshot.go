package rpc

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	dat "godat/runtime"
)

// Flow says how many messages an end of a connection may send, and how many wait.
type Flow struct {
	Credits int // receives that the peer has for calls, answers and cancels, as far as known
	Waiting int // messages that wait for a receive
	// WaitingAge is how long the first of them has waited, at least: the time since the first
	// snapshot in which it waited.
	WaitingAge time.Duration
}

// Answered counts answers. The counts only grow.
type Answered struct {
	Answers  uint64
	Failures uint64 // answers among them that are an Error
}

func (a *Answered) add(o Answered) {
	a.Answers += o.Answers
	a.Failures += o.Failures
}

// answered is what an Answered is read from.
type answered struct{ answers, failures atomic.Uint64 }

// count counts an answer.
func (a *answered) count(code uint16) {
	a.answers.Add(1)
	if code != 0 {
		a.failures.Add(1)
	}
}

func (a *answered) snapshot() Answered {
	failures := a.failures.Load() // before the answers, of which there are not fewer
	return Answered{a.answers.Load(), failures}
}

// ClientSnapshot describes a [Client] at one moment. A snapshot of the adapter has one for each
// client, as the report "rpc clients".
type ClientSnapshot struct {
	Server    string // its address
	Down      string // why there is no connection; empty while there is one
	Attempts  int    // to connect that have failed since there was a connection
	Calls, Of int    // calls under way, and the most at a time
	// Callers wait for a place for their call, or for a connection; the first of them for CallersAge.
	Callers    int
	CallersAge time.Duration
	// OldestAge is how long the oldest of the calls has been under way, at least: the time since the
	// first snapshot that had it. OldestMethod is its method.
	OldestAge    time.Duration
	OldestMethod uint16
	Flow
	Answered
	CallEnds
	Reconnects uint64 // connections after the first
	Minute     Minute // the last one
	Connection string // its name, as the adapter's list of connections has it; empty while there is none

	ownCalls, serverCalls int           // Config.Calls of both ends
	closing               time.Duration // how long ago Close was called; 0 if it was not
}

// ServerSnapshot describes a [Server] at one moment. A snapshot of the adapter has one for each
// server, as the report "rpc servers".
type ServerSnapshot struct {
	Address string
	Conns   int
	// Requests are those without an answer, of which the program has not taken Untaken from
	// [Server.Requests]. UntakenAge is how long the oldest of these has waited.
	Requests, Untaken int
	UntakenAge        time.Duration
	Answered
	CallEnds
	Refused uint64 // requests that were refused with CodeDraining or CodeBusy
	Minute  Minute // the last one
	// Workers are the goroutines of [Server.Serve]. OldestAge is how long the oldest of the requests that the program
	// has taken has been with it, OldestMethod its method, and OldestClient the client's address with the
	// connection's ID. Takes is how long a request of that method is with the program, a moving mean, of all methods
	// where it has none now; 0 if none was answered yet. QuietAge is how long ago the last request was answered; 0 if none was.
	Workers      int
	OldestAge    time.Duration
	OldestMethod uint16
	OldestClient string
	Takes        time.Duration
	QuietAge     time.Duration

	most   int           // of the requests that wait, those of one client
	client string        // that one
	fed    bool          // the program reads Requests
	places int           // Config.Conns
	tardy  time.Duration // how long a request of the method is with the program whose call missed its deadline last

	closing time.Duration // how long ago Close was called; 0 if it was not
}

// servedRow describes a connection of a [Server] at one moment. A snapshot of the adapter
// has one for each, as the report "rpc connections".
type servedRow struct {
	Client string // its address, and the connection's ID
	Server string
	// Requests are those without an answer, of which the program has not taken Untaken.
	Requests, Untaken int
	// OldestAge and OldestMethod are those of the oldest request that the program has taken: for how
	// long it has had it.
	OldestAge    time.Duration
	OldestMethod uint16
	Flow
}

// snapshot says how many messages may be sent, and how many wait.
func (l *link) snapshot() (f Flow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if room := l.room(); room > 1 {
		f.Credits = int(room - 1) // the last is a CREDIT's
	}
	if f.Waiting = len(l.waiting); f.Waiting == 0 {
		l.look = look{}
	} else {
		f.WaitingAge = l.look.age(uint64(l.sent))
	}
	return f
}

// Snapshot describes the client now. It disturbs no call. It is zero for a nil client.
func (c *Client) Snapshot() ClientSnapshot {
	if c == nil || c.ia == nil {
		return ClientSnapshot{}
	}
	c.mu.Lock()
	s, reconnects, attempts := c.now, c.reconnects, c.attempts
	c.mu.Unlock()
	now := ClientSnapshot{Server: c.address, Of: len(s.slots), Answered: c.answered.snapshot(), CallEnds: c.ends.snapshot(), Reconnects: reconnects}
	now.Minute, now.closing = c.lately.snapshot(now.Answers), c.ending.age()
	now.Callers, now.CallersAge = c.waits.snapshot()
	if s.isOver() {
		now.Down, now.Attempts = reasonOf(c.why(s)), attempts
		return now
	}
	s.mu.Lock()
	calls := make([]underWay, 0, len(s.slots))
	for i := range s.slots {
		if p := &s.slots[i]; p.active {
			calls = append(calls, underWay{p.call, p.method})
		}
	}
	s.mu.Unlock()
	now.Calls, now.Connection = len(calls), fmt.Sprint(s.link.conn)
	now.ownCalls, now.serverCalls = c.cfg.Calls, s.peerCalls
	now.OldestAge, now.OldestMethod = s.looks.oldest(calls)
	now.Flow = s.link.snapshot()
	return now
}

// list adds the client's reports to the adapter's snapshots.
func (c *Client) list() (err error) {
	c.unlist, err = list(c.ia, []report{
		{"rpc clients", func() []any { return []any{c.Snapshot()} }},
	})
	if err == nil {
		err = c.joinTotals()
	}
	return err
}

type report struct {
	kind string
	rows func() []any
}

// list adds reports to an adapter's snapshots, and returns what ends them.
func list(ia *dat.IA, reports []report) (unlist []func(), err error) {
	unlist = make([]func(), len(reports))
	for i, r := range reports {
		if unlist[i], err = ia.Report(r.kind, r.rows); err != nil {
			return nil, err
		}
	}
	return unlist, nil
}

// Snapshot describes the server now. It disturbs no request. It is zero for a nil server.
func (s *Server) Snapshot() ServerSnapshot {
	if s == nil || s.ia == nil {
		return ServerSnapshot{}
	}
	now, most, oldest := s.snapshot()
	if most != nil {
		now.client = most.peer()
	}
	if oldest != nil {
		now.OldestClient = oldest.peer()
	}
	return now
}

// snapshot is Snapshot but for the clients of which most requests wait, and of the oldest with the program, which it
// returns.
func (s *Server) snapshot() (now ServerSnapshot, most, oldest *served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = ServerSnapshot{
		Address: s.Addr(), Conns: len(s.conns), Requests: s.taken, Untaken: s.untaken(),
		Answered: s.answered.snapshot(), CallEnds: s.ends.snapshot(), Refused: s.refused,
		Workers: s.workers, fed: s.fed != nil, places: s.cfg.Conns,
	}
	if !s.last.IsZero() {
		now.QuietAge = max(time.Since(s.last), 1)
	}
	now.Minute, now.closing = s.lately.snapshot(now.Answers), s.ending.age()
	now.UntakenAge = s.untakenAge()
	for _, p := range s.queue.turns {
		if p.line.waiting > now.most {
			now.most, most = p.line.waiting, p
		}
	}
	now.tardy, now.Takes = s.takes(now.Minute.method), s.queue.load.all.mean
	if r := s.oldest(); r != nil {
		oldest, now.OldestAge, now.OldestMethod, now.Takes = r.from, time.Since(r.began), r.header.code, s.takes(r.header.code)
	}
	return now, most, oldest
}

// takes is how long a request of a method is with the program. The caller holds mu.
func (s *Server) takes(method uint16) time.Duration {
	if c := s.methods.find(method); c != nil {
		return c.takes.mean
	}
	return s.queue.load.all.mean
}

// oldest is the request that the program has had for the longest time; nil if it has none. The caller holds mu.
func (s *Server) oldest() (oldest *Request) {
	for p := range s.conns {
		if p.line.running == 0 {
			continue
		}
		for i := range p.slots {
			r := p.slots[i].now.Load()
			if r != nil && s.has(r) && (oldest == nil || r.began.Before(oldest.began)) {
				oldest = r
			}
		}
	}
	return oldest
}

// has reports whether the program has taken a request. The caller holds mu.
func (s *Server) has(r *Request) bool { return !r.waits && !r.began.IsZero() && !s.offers(r) }

// list adds the server's reports to the adapter's snapshots.
func (s *Server) list() (err error) {
	s.unlist, err = list(s.ia, []report{
		{"rpc servers", func() []any { return []any{s.Snapshot()} }},
		{"rpc connections", s.served},
	})
	if err == nil {
		err = s.joinTotals()
	}
	return err
}

// served is the report "rpc connections" of a server, the oldest connection first.
func (s *Server) served() (rows []any) {
	s.mu.Lock()
	all := slices.SortedFunc(maps.Keys(s.conns), func(a, b *served) int { return cmp.Compare(a.link.conn.ID(), b.link.conn.ID()) })
	s.mu.Unlock()
	for _, p := range all {
		rows = append(rows, p.snapshot())
	}
	return rows
}

func (p *served) snapshot() servedRow {
	var oldest time.Time
	s := servedRow{Client: p.peer(), Server: p.server.Addr(), Flow: p.link.snapshot()}
	p.server.mu.Lock()
	for i := range p.slots {
		if r := p.slots[i].now.Load(); r != nil {
			if s.Requests++; !p.server.has(r) {
				s.Untaken++
			} else if oldest.IsZero() || r.began.Before(oldest) {
				oldest, s.OldestMethod, s.OldestAge = r.began, r.header.code, time.Since(r.began)
			}
		}
	}
	p.server.mu.Unlock()
	return s
}
