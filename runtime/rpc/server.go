package rpc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"godat/hw"
	dat "godat/runtime"
)

// Server takes calls. Its methods may be called from any goroutine.
type Server struct {
	ia       *dat.IA
	cfg      Config
	ln       *dat.Listener
	requests chan *Request
	closePZ  func() error
	loans    loans         // of requests that move bytes
	done     chan struct{} // closed when the reader has ended
	unlist   []func()      // end the reports of the adapter

	answered  answered // under mu
	latencies latencies

	mu       sync.Mutex
	draining bool
	active   int           // requests without an answer, and connections with answers that wait
	taken    int           // requests without an answer
	idle     chan struct{} // closed when draining and none is active; nil before
	rested   bool          // idle is closed
	begun    uint64        // requests that were given to the program
	refused  uint64
	look     look             // at the first request that the program has not taken
	conns    map[*served]bool // those that are up
}

// Listen takes calls at address, "host:port" as [godat/runtime.IA.Listen] has it: "127.0.0.1:7000"
// serves on every provider, and port 0 is one that is free. The program handles requests by Serve,
// or takes them from Requests. ctx bounds the call alone: its end does not end the server.
//
// The address of a server that has ended, or whose process has, is free at once. While that server
// is being shut down the address is in use: the error matches [godat/runtime.ErrConnQualInUse], or
// with Config.Await, Listen waits.
func Listen(ctx context.Context, ia *dat.IA, address string, cfg Config) (*Server, error) {
	const op = "rpc.Listen"
	if err := cfg.complete(op); err != nil {
		return nil, err
	}
	s := &Server{ia: ia, done: make(chan struct{}), conns: make(map[*served]bool)}
	var err error
	if s.closePZ, err = cfg.makePZ(ia); err != nil {
		return nil, err
	}
	s.cfg = cfg
	if s.ln, err = cfg.listen(ctx, ia, address); err != nil {
		return nil, errors.Join(err, s.closePZ())
	}
	s.requests = make(chan *Request, cfg.Conns*cfg.Calls)
	if err = s.list(); err != nil {
		return nil, errors.Join(err, s.ln.Close(), s.closePZ())
	}
	go s.read()
	return s, nil
}

// Addr is the address to dial.
func (s *Server) Addr() string { return s.ln.Addr() }

// PZ is the zone of the server's memory for RDMA: register memory in it for
// [Request.Read] and [Request.Write], without privileges for peers.
func (s *Server) PZ() *dat.PZ { return s.cfg.PZ }

// Requests is the channel on which requests come. It has room for Config.Conns × Config.Calls of
// them, which is all that a server keeps. The program calls Reply or Fail of each, once. The channel
// is closed when the server or its adapter is closed.
func (s *Server) Requests() <-chan *Request { return s.requests }

// Shutdown ends the server in order. It refuses new connections, and new calls, which have not
// run then. It waits until all requests that came before are answered, and ends the connections. The
// program goes on taking Requests meanwhile, in another goroutine.
//
// A handler holds Shutdown for as long as it runs, and a client that takes no answers for
// Config.Stall and then the [godat/ep.Attr].DrainTimeout of sends. If ctx ends before, Shutdown breaks
// the connections; the error matches the cause of ctx, and says how many requests have no answer. A
// nil ctx is INVALID_PARAMETER. While memory of PZ is not freed, the error is that of Close; free it,
// and call Close.
func (s *Server) Shutdown(ctx context.Context) error {
	if ctx == nil {
		return hw.Errorf("rpc.Server.Shutdown", hw.InvalidParameter, hw.Arg1, "a nil context")
	}
	err := s.rest(ctx) // until all requests are answered
	if err == nil {
		s.sayEnd(ctx)
		err = s.rest(ctx) // until that has been sent
	}
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return errors.Join(s.ln.Shutdown(ctx), s.Close())
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
	defer s.mu.Unlock()
	text := fmt.Sprintf("%d requests without an answer, %d connections with messages that wait", s.taken, s.active-s.taken)
	for p := range s.conns {
		for i := range p.calls {
			if name := p.calls[i].unanswered(); name != "" {
				return text + "; " + name
			}
		}
	}
	return text
}

// sayEnd tells all clients that the server has answered what it has begun.
func (s *Server) sayEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Stall)
	defer cancel()
	s.mu.Lock()
	s.idle = nil // the ENDs may wait, too
	all := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, p := range all {
		if b, err := p.link.conn.WaitBuffer(ctx); err == nil {
			_ = p.link.send(bare(b, kindEnd, 0)) // fails when the connection has ended
		}
	}
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

// begin counts a request, for which Requests has a place then. It returns the code of a
// refusal, or 0.
func (s *Server) begin() (code uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining:
		code = CodeDraining
	case s.taken == cap(s.requests): // connections have ended, and their requests are not answered
		code = CodeBusy
	}
	if code != 0 {
		s.refused++
		return code
	}
	s.begun++
	s.active++
	s.taken++
	return 0
}

// finish counts an answer; count(-1) follows when it has been sent.
func (s *Server) finish(code uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	s.answered.count(code)
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
// [Request.ReadBytes], WriteBytes, ReadFile and WriteFile under way. A nil server has nothing to close.
func (s *Server) Close() error {
	if s == nil {
		return nil
	}
	for _, end := range s.unlist {
		end()
	}
	err := s.ln.Close()
	<-s.done
	s.loans.end()
	return errors.Join(err, s.closePZ())
}

// read is the goroutine that accepts connections and takes messages.
func (s *Server) read() {
	defer close(s.done)
	defer close(s.requests)
	requests := s.ln.Requests()
	for {
		select {
		case ev := <-requests:
			if ev.Number == dat.Closed {
				requests = nil // Batches ends, too
				continue
			}
			s.accept(dat.RequestOf(ev))
		case batch := <-s.ln.Batches():
			for _, ev := range batch.Events() {
				if ev.Number == dat.Closed {
					batch.Release()
					s.abandon()
					return
				}
				s.handle(ev)
			}
			batch.Release()
		}
	}
}

// abandon ends what is left of the connections. A close of the adapter tells nothing of them.
func (s *Server) abandon() {
	s.mu.Lock()
	left := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, p := range left {
		p.link.end()
		p.cancelAll()
	}
}

// accept accepts a connection, unless the server is draining. A peer with which that fails
// is rejected.
func (s *Server) accept(cr *dat.CR) {
	asked, err := cr.Query()
	if err != nil {
		return // it has been answered: the listener is closed
	}
	peer, err := parseHello(asked.Private)
	if err != nil {
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
	}
}

func (s *Server) newServed(c *dat.Conn, peer hello) *served {
	p := &served{server: s, calls: make([]Request, s.cfg.Calls), answer: fitting(peer.message)}
	p.link = link{conn: c, own: uint32(s.cfg.receives()), stall: s.cfg.Stall, backlog: s.count}
	p.link.begin(peer)
	for i := range p.calls {
		p.calls[i].from = p
	}
	return p
}

func (s *Server) handle(ev dat.Event) {
	c := dat.ConnOf(ev)
	if c == nil {
		return
	}
	p, _ := c.Context.(*served)
	switch {
	case p == nil: // a connection that setup refused
	case ev.Number == dat.Established:
		s.mu.Lock()
		s.conns[p] = true
		s.mu.Unlock()
		s.count(-1)
	case ev.Ended():
		s.mu.Lock()
		up := s.conns[p]
		delete(s.conns, p)
		s.mu.Unlock()
		if !up {
			s.count(-1)
		}
		p.link.end()
		p.cancelAll()
		_ = c.Close()
	case ev.Op == dat.OpRecv:
		b := c.Message(ev)
		if b != nil && p.take(b) != nil {
			p.link.breakOff()
		}
	}
}

// served is the server's end of a connection.
type served struct {
	link   link
	server *Server
	answer int // the most bytes of a payload that the client takes
	calls  []Request
	looks  looks
}

func (p *served) peer() string {
	return fmt.Sprintf("%v (connection %d)", p.link.conn, p.link.conn.ID())
}

// name says which call a header begins.
func (p *served) name(h header) string {
	return fmt.Sprintf("method %d, call %#x of %s", h.code, h.call, p.peer())
}

// of says of which call an error of a Request's method is.
func (p *served) of(h header, method string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("rpc.Request.%s, %s: %w", method, p.name(h), err)
}

func (p *served) take(b *dat.Buffer) error {
	m, err := p.link.read(b)
	slot := int(m.call & slotMask)
	if err == nil && m.kind != kindCredit && m.kind != kindEnd && slot >= len(p.calls) {
		err = errMalformed
	}
	if err != nil {
		p.link.conn.Release(b)
		return err
	}
	switch m.kind {
	case kindCall:
		return p.call(&p.calls[slot], b, m)
	case kindCancel:
		p.calls[slot].cancel(m.call)
	case kindAnswer, kindEnd:
		err = errMalformed
	}
	p.link.conn.Release(b)
	return err
}

func (p *served) call(r *Request, b *dat.Buffer, m message) error {
	if !r.begin(b, m) {
		p.link.conn.Release(b)
		return errMalformed
	}
	if code := p.server.begin(); code != 0 {
		return r.answer(code, []byte(refusals[code]))
	}
	r.counted = true
	r.number.Store(p.server.begun) // which this goroutine alone writes
	p.server.requests <- r         // which has a place for each
	return nil
}

func (p *served) cancelAll() {
	for i := range p.calls {
		p.calls[i].abandon()
	}
}
