package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// Server takes calls. Its methods may be called from any goroutine.
type Server struct {
	ia       *dat.IA
	cfg      Config
	ln       *dat.Listener
	requests chan event.Event // of feed
	closePZ  func() error
	loans    loans          // of requests that move bytes
	fetches  sync.WaitGroup // of kept answers; the reader adds
	wake     chan struct{}  // a request waits, for feed
	done     chan struct{}  // closed when the reader has ended
	stays    chan struct{}  // sent to when something could not be closed; of length 1
	unlist   []func()       // end the reports of the adapter
	ending   ending

	answered answered // under mu
	methods  methods
	ends     endCounts
	lately   lately
	journal  journal

	leaveTotals func()

	mu       sync.Mutex
	more     sync.Cond     // a request waits, or none comes any more
	over     bool          // the reader has ended
	fed      chan struct{} // closed when feed has ended; nil before the first call of Requests
	placed   *Request      // the last in the channel
	hand     *Request      // feed has it until the channel has a place
	queue    queue
	draining bool
	closing  bool          // this server ends its connections
	active   int           // requests without an answer, connections with answers that wait, and a shutdown that says the end
	taken    int           // requests without an answer
	idle     chan struct{} // closed when draining and none is active; nil before
	said     bool          // a shutdown has said the end, or is about to
	rested   bool          // idle is closed
	most     int           // of taken
	workers  int           // of Serve
	last     time.Time     // when a request was answered last
	refused  uint64
	conns    map[*served]bool // those that are up
}

// Listen takes calls at address, "host:port" as [godat/runtime.IA.Listen] has it: "127.0.0.1:7000"
// serves on every provider, and port 0 is one that is free. The program handles requests by Serve,
// or takes them from Requests. ctx bounds the call alone: its end does not end the server.
//
// The address of a server that is being shut down, that has ended, or whose process has, is free at once.
// Before that it is in use: the error matches [godat/hw.ErrConnQualInUse], or with Config.Await,
// Listen waits.
func Listen(ctx context.Context, ia *dat.IA, address string, cfg Config) (*Server, error) {
	const op = "rpc.Listen"
	if err := openFor(op, ia); err != nil {
		return nil, err
	}
	if err := cfg.complete(op, ia.Attr()); err != nil {
		return nil, err
	}
	s := &Server{ia: ia, done: make(chan struct{}), stays: make(chan struct{}, 1), conns: make(map[*served]bool), requests: make(chan event.Event, 1), wake: make(chan struct{}, 1)}
	s.methods.init(cfg.Methods)
	s.journal.log = cfg.Log
	s.lately.begin()
	s.more.L = &s.mu
	var err error
	if s.closePZ, err = cfg.makePZ(op, ia); err != nil {
		return nil, err
	}
	s.cfg = cfg
	if s.ln, err = cfg.listen(ctx, ia, address); err != nil {
		return nil, errors.Join(err, s.closePZ())
	}
	s.most = cfg.Conns * cfg.Calls
	if err = s.list(); err != nil {
		return nil, errors.Join(err, s.ln.Close(), s.closePZ())
	}
	go s.read()
	return s, nil
}

// Addr is the address to dial; empty for a nil server.
func (s *Server) Addr() string {
	if s == nil {
		return ""
	}
	return s.ln.Addr()
}

// PZ is the zone of the server's memory for RDMA: register memory in it with LocalWrite for [Request.Read]
// and LocalRead for [Request.Write]. Privileges for peers are not needed, since it is the server that moves
// the bytes. Memory that stays between requests is better in a zone of the program's: see Config.PZ and the
// example of Request.Read. PZ is nil for a nil server.
func (s *Server) PZ() *mem.PZ {
	if s == nil {
		return nil
	}
	return s.cfg.PZ
}

// Shutdown ends the server in order. It gives the address back, so that the next server may listen there,
// and refuses new calls, which have not run then. It waits until all requests that came before are answered, and ends the connections. The
// program goes on taking Requests meanwhile, in another goroutine.
//
// A handler holds Shutdown for as long as it runs, and a client that takes no answers for
// Config.Stall and then the [godat/ep.Attr].DrainTimeout of sends. If ctx ends before, Shutdown breaks
// the connections; the error matches the cause of ctx, and says how many requests have no answer. A
// nil ctx is INVALID_PARAMETER. While memory of PZ is not freed, the error is that of Close; free it,
// and call Close.
func (s *Server) Shutdown(ctx context.Context) error {
	if s == nil || s.ia == nil {
		return notMade("rpc.Server.Shutdown", "Server", "Listen")
	}
	if ctx == nil {
		return hw.Errorf("rpc.Server.Shutdown", hw.InvalidParameter, hw.Arg1, "a nil context")
	}
	s.drain()
	stopped := s.ln.Stop() // so that the next server may have the address
	err := s.rest(ctx)     // until all requests are answered
	if err == nil {
		s.sayEnd(ctx)
		err = s.rest(ctx) // until that has been sent
	}
	if s.close(); err == nil {
		err = s.ln.Shutdown(ctx)
	}
	return errors.Join(stopped, err, s.Close())
}

// rest waits until the server has nothing to do.
func (s *Server) rest(ctx context.Context) error {
	select {
	case <-s.drain():
		return nil
	case <-s.done: // the server or its adapter is closed
		return nil
	case <-ctx.Done():
		return fmt.Errorf("rpc.Server.Shutdown: %s: %w", s.unanswered(), context.Cause(ctx))
	}
}

// unanswered says what a shutdown cuts off.
func (s *Server) unanswered() string {
	s.mu.Lock()
	text := fmt.Sprintf("%d requests without an answer, %d connections with messages that wait or answers that are not fetched", s.taken, s.active-s.taken)
	all := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, p := range all {
		for i := range p.slots {
			if r := p.slots[i].now.Load(); r != nil {
				return text + "; " + r.String()
			}
		}
	}
	return text
}

// sayEnd tells all clients that the server has answered what it has begun, unless another shutdown does: rest
// waits for that, too.
func (s *Server) sayEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Stall)
	defer cancel()
	s.mu.Lock()
	if s.said {
		s.mu.Unlock()
		return
	}
	s.said, s.idle = true, nil // the ENDs may wait, too
	s.active++
	all := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, p := range all {
		if b, err := p.link.conn.WaitBuffer(ctx); err == nil {
			_ = p.link.send(bare(b, kindEnd, 0)) // fails when the connection has ended
		}
	}
	s.count(-1)
}

// drain begins to refuse calls. The channel is closed when no request is without an answer.
func (s *Server) drain() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	if s.idle == nil {
		s.idle = make(chan struct{})
		if s.rested = s.active == 0; s.rested {
			close(s.idle)
		}
	}
	return s.idle
}

// count counts what a shutdown waits for.
func (s *Server) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active += n; s.active == 0 && s.idle != nil && !s.rested {
		s.rested = true
		close(s.idle)
	}
}

// Close ends the server and all its connections at once. Requests without an answer stay
// readable; their Reply is an error. Closing again does nothing. While memory of PZ is not
// freed, the error is INVALID_STATE/PZ_IN_USE; then Close may be called again. Close waits for
// [Request.ReadBytes], WriteBytes, ReadFile and WriteFile under way. A nil server is INVALID_HANDLE.
func (s *Server) Close() error {
	if s == nil || s.ia == nil {
		return notMade("rpc.Server.Close", "Server", "Listen")
	}
	defer func() { // behind all that Close may wait for: until then the page says what that is
		for _, end := range s.unlist {
			end()
		}
	}()
	s.ending.begin()
	s.close()
	err := s.ln.Close()
	if err != nil {
		tell(s.stays)
	}
	<-s.done
	s.mu.Lock()
	fed := s.fed
	s.mu.Unlock()
	if fed != nil {
		<-fed
	}
	s.journal.flush()
	s.fetches.Wait()
	s.loans.end()
	s.leaveTotals()
	return errors.Join(err, s.closePZ())
}

// read is the goroutine that accepts connections and takes messages.
func (s *Server) read() {
	defer close(s.done)
	defer s.endRequests()
	requests := s.ln.Requests()
	for {
		select {
		case ev := <-requests:
			if ev.Number == event.Closed {
				requests = nil // Batches ends, too
				continue
			}
			s.accept(ep.RequestOf(ev))
		case batch := <-s.ln.Batches():
			for _, ev := range batch.Events() {
				if ev.Number == event.Closed {
					batch.Release()
					s.abandon()
					return
				}
				s.handle(ev)
			}
			batch.Release()
		case <-s.stays:
			s.abandon()
			return
		}
	}
}

// abandon ends what is left of the connections. A close of the adapter tells nothing of them.
func (s *Server) abandon() {
	s.mu.Lock()
	left := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, p := range left {
		_ = p.link.end(errServerClosed)
		p.abandon()
	}
}

// notAccepted counts and logs what this end lacks for a connection, of which the peer is told no more than CodeFull. A
// server that has Conns of them is no news, nor is a peer that has gone.
func (s *Server) notAccepted(err error) {
	full := errors.Is(err, &hw.Error{Type: hw.InsufficientResources, Sub: hw.ResourceTEP})
	if full {
		s.lately.count(kindFull, "")
	}
	lacks := errors.Is(err, hw.ErrInsufficientResources) || errors.Is(err, &hw.Error{Type: hw.InvalidHandle, Sub: hw.HandlePZ})
	if lacks && !full {
		s.lately.lacks(err.Error())
		s.journal.put(slog.LevelWarn, "a connection was not accepted", slog.Any("error", err))
	}
}

// accept accepts a connection, unless the server is draining. A peer with which that fails
// is rejected.
func (s *Server) accept(cr *ep.CR) {
	asked, err := cr.Query()
	if err != nil {
		return // it has been answered: the listener is closed
	}
	peer, err := parseHello(asked.Private)
	if err != nil {
		s.lately.strange(speaks(err))
		_ = cr.Reject(refusal(CodeUnknown)) // fails when the peer has gone
		return
	}
	s.mu.Lock()
	draining := s.draining
	if !draining {
		s.active++ // until it is up, so that a shutdown tells it of the end
	}
	s.mu.Unlock()
	if draining {
		_ = cr.Reject(refusal(CodeDraining))
		return
	}
	settings := s.cfg.conn()
	settings.Setup = func(c *dat.Conn) ([]byte, error) {
		c.Context = s.newServed(c, peer)
		return s.cfg.hello(), nil
	}
	if _, err := s.ln.AcceptWith(cr, settings); err != nil {
		s.count(-1)
		s.notAccepted(err)
	}
}
