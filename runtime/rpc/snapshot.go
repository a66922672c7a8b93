package rpc

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
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

// answered is what an Answered is read from. One goroutine at a time adds.
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

	most   int    // of the requests that wait, those of one client
	client string // that one
}

// ServedSnapshot describes a connection of a [Server] at one moment. A snapshot of the adapter
// has one for each, as the report "rpc connections".
type ServedSnapshot struct {
	Client string // its address, and the connection's ID
	Server string
	// Requests are those without an answer, of which the program has not taken Untaken.
	Requests, Untaken int
	// OldestAge and OldestMethod are those of the oldest request that the program has taken: for how
	// long it has had it, as in a ClientSnapshot.
	OldestAge    time.Duration
	OldestMethod uint16
	Flow
}

// Trouble says what is wrong with a client, if something has lasted that long.
func (s ClientSnapshot) Trouble(late time.Duration) string {
	waits := ""
	if s.CallersAge >= late {
		waits = fmt.Sprintf("%s for a place, the first for %s: all %d calls at a time are under way, so calls take long or Config.Calls is too few", with(s.Callers, "caller"), lasting(s.CallersAge), s.Of)
		if s.Down != "" {
			waits = fmt.Sprintf("%s for a connection, the first for %s", with(s.Callers, "caller"), lasting(s.CallersAge))
		}
	}
	felt := s.Minute.hurts("%s missed the deadline", waits)
	if cause := s.cause(late); cause != "" {
		felt = append(felt, cause)
	}
	return strings.Join(felt, "; ")
}

// cause is why callers wait, as far as the client knows.
func (s ClientSnapshot) cause(late time.Duration) string {
	switch {
	case s.Down != "" && s.Attempts > 0:
		return fmt.Sprintf("no connection after %s: %s", attempts(s.Attempts), s.Down)
	case s.Down != "":
		return "no connection: " + s.Down
	case s.WaitingAge >= late:
		return stalled(s.Waiting, "call or cancel", "calls or cancels", "server", s.WaitingAge)
	case s.OldestAge >= late && s.Calls == 1:
		return fmt.Sprintf("1 call, of method %d, has waited %s for its answer: its handler still runs, or the server's program takes no requests; lately %s came; look at its page", s.OldestMethod, lasting(s.OldestAge), counted(s.Minute.Answers, "answer"))
	case s.OldestAge >= late:
		return fmt.Sprintf("%d calls wait for answers, the oldest, of method %d, for %s: its handler still runs, or the server's program takes no requests; lately %s came; look at its page", s.Calls, s.OldestMethod, lasting(s.OldestAge), counted(s.Minute.Answers, "answer"))
	}
	return ""
}

// Misses is the server's address where no more is wrong than that its connection has ended, which no caller has felt:
// another line may say why. It is "" otherwise.
func (s ClientSnapshot) Misses() string {
	if s.Down == "" || s.Attempts > 0 || s.Callers > 0 || len(s.Minute.hurts("%s", "")) > 0 {
		return ""
	}
	return s.Server
}

// Trouble says what is wrong with a server, if something has lasted that long.
func (s ServerSnapshot) Trouble(late time.Duration) string {
	waits := ""
	if s.UntakenAge >= late {
		waits = untaken(s.Untaken, s.UntakenAge) + s.nearlyAll() + fmt.Sprintf("; its handlers are blocked, or too few: they have %s, and gave %s lately", counted(uint64(s.Requests-s.Untaken), "request"), counted(s.Minute.Answers, "answer"))
	}
	return strings.Join(s.Minute.hurts("%s answered behind the deadline", waits), "; ")
}

// nearlyAll says of which client nearly all requests are that wait, where others have some work done, too.
func (s ServerSnapshot) nearlyAll() string {
	const many = 8
	if s.Conns < 2 || s.most < many || s.most*4 < s.Untaken*3 {
		return ""
	}
	return fmt.Sprintf(", %d of them of the client %s", s.most, s.client)
}

// Trouble says what is wrong with a server's connection, if something has lasted that long.
func (s ServedSnapshot) Trouble(late time.Duration) string {
	switch {
	case s.WaitingAge >= late:
		return stalled(s.Waiting, "answer", "answers", "client", s.WaitingAge)
	case s.OldestAge < late:
	case s.Requests-s.Untaken == 1:
		return fmt.Sprintf("this program took 1 request, of method %d, and has not answered it for %s", s.OldestMethod, lasting(s.OldestAge))
	default:
		return fmt.Sprintf("this program took %d requests and has not answered them, the oldest, of method %d, for %s", s.Requests-s.Untaken, s.OldestMethod, lasting(s.OldestAge))
	}
	return ""
}

// looks are the calls that the last snapshot saw under way, with when a snapshot saw each first.
// No call reads a clock for that.
type looks struct {
	mu    sync.Mutex
	first map[uint32]time.Time
}

// underWay is a call that has no answer.
type underWay struct {
	call   uint32
	method uint16
}

// oldest finds the oldest of all calls that are under way.
func (l *looks) oldest(calls []underWay) (age time.Duration, method uint16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	first := make(map[uint32]time.Time, len(calls))
	for _, c := range calls {
		at, known := l.first[c.call]
		if !known {
			at = now
		}
		first[c.call] = at
		if d := now.Sub(at); d >= age {
			age, method = d, c.method
		}
	}
	l.first = first
	return age, method
}

// look is when a snapshot first saw that a count stands still while something waits.
type look struct {
	count uint64
	at    time.Time
}

// age says for how long at least the count has been the same.
func (l *look) age(count uint64) time.Duration {
	if l.at.IsZero() || l.count != count {
		*l = look{count, time.Now()}
	}
	return time.Since(l.at)
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
	now.Minute = c.lately.snapshot(now.Answers)
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
	now.Calls = len(calls)
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
	now, most := s.snapshot()
	if most != nil {
		now.client = most.peer()
	}
	return now
}

// snapshot is Snapshot but for the client of which most requests wait, which it returns.
func (s *Server) snapshot() (now ServerSnapshot, most *served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = ServerSnapshot{
		Address: s.Addr(), Conns: len(s.conns), Requests: s.taken, Untaken: s.untaken(),
		Answered: s.answered.snapshot(), CallEnds: s.ends.snapshot(), Refused: s.refused,
	}
	now.Minute = s.lately.snapshot(now.Answers)
	now.UntakenAge = s.untakenAge()
	for _, p := range s.queue.turns {
		if p.line.waiting > now.most {
			now.most, most = p.line.waiting, p
		}
	}
	return now, most
}

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

// served is the report "rpc connections" of a server.
func (s *Server) served() (rows []any) {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, p := range all {
		rows = append(rows, p.snapshot())
	}
	return rows
}

func (p *served) snapshot() ServedSnapshot {
	var taken []underWay
	s := ServedSnapshot{Client: p.peer(), Server: p.server.Addr(), Flow: p.link.snapshot()}
	p.server.mu.Lock()
	for i := range p.slots {
		if r := p.slots[i].now.Load(); r != nil {
			if s.Requests++; r.waits || p.server.offers(r) {
				s.Untaken++
			} else {
				taken = append(taken, underWay{r.header.call, r.header.code})
			}
		}
	}
	p.server.mu.Unlock()
	s.OldestAge, s.OldestMethod = p.looks.oldest(taken)
	return s
}

// String names the client by the server's address. It may be called at any time, like the
// String of every handle.
func (c *Client) String() string {
	if c == nil {
		return "Client(nil)"
	}
	return "Client(" + c.address + ")"
}

// LogValue names the server's address, for log/slog.
func (c *Client) LogValue() slog.Value {
	if c == nil {
		return slog.StringValue(c.String())
	}
	return slog.GroupValue(slog.String("server", c.address))
}

// String names the server by its address. It may be called at any time, like the String of
// every handle.
func (s *Server) String() string {
	if s == nil {
		return "Server(nil)"
	}
	return "Server(" + s.Addr() + ")"
}

// LogValue names the server's address, for log/slog.
func (s *Server) LogValue() slog.Value {
	if s == nil {
		return slog.StringValue(s.String())
	}
	return slog.GroupValue(slog.String("address", s.Addr()))
}

// LogValue is String, for log/slog.
func (r *Request) LogValue() slog.Value { return slog.StringValue(r.String()) }
