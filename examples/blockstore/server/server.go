package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"go.uber.org/zap"

	"godat/examples/blockstore/proto"
	"godat/examples/blockstore/store"
	dat "godat/runtime"
)

// Config configures a server. Zero values take the defaults.
type Config struct {
	Addr   string // local address; empty means all
	Qual   uint64 // the port; 0 lets the provider choose
	Store  *store.Store
	Limits proto.Limits // the most that a client gets; default 64 slots of 1 MiB
	// Sessions is the most clients at a time, so Sessions windows are the most
	// memory. Default 64.
	Sessions int
	Log      *zap.Logger
}

// Server serves one store.
type Server struct {
	// Immutable after New.
	ia       *dat.IA
	store    *store.Store
	limits   proto.Limits
	log      *zap.Logger
	events   *dat.Dispatcher // completions, and connections' ends
	requests *dat.Dispatcher // connection requests
	psp      *dat.PSP

	// Owned by Run.
	sessions []*session // by number; nil where free
	live     int
	stopping bool
	batch    batch
}

const (
	// drainTime is how long an orderly end of a connection may take.
	drainTime = 2 * time.Second
	// backlog is how many connection requests may wait for the server: more than
	// there is room for, so that it is the server that says so.
	backlog = 64
)

// errAborted: somebody closed the adapter under the server.
var errAborted = errors.New("server: its dispatcher was closed")

// New listens. Run serves, and must be called.
func New(ia *dat.IA, cfg Config) (*Server, error) {
	s := &Server{
		ia: ia, store: cfg.Store, log: cfg.Log,
		limits: proto.Limits{
			Slots: cmp.Or(cfg.Limits.Slots, 64),
			Block: cmp.Or(cfg.Limits.Block, proto.MaxBlock),
		},
		sessions: make([]*session, cmp.Or(cfg.Sessions, 64)),
		batch:    newBatch(),
	}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	if err := s.listen(cfg); err != nil {
		return nil, errors.Join(fmt.Errorf("server: listen on %s:%d: %w", cfg.Addr, cfg.Qual, err), s.close())
	}
	return s, nil
}

func (s *Server) listen(cfg Config) (err error) {
	if err := s.limits.Check(); err != nil {
		return err
	}
	n := len(s.sessions)
	s.events, err = s.ia.NewDispatcher(dat.DispatcherConfig{
		Mode: dat.ModeChannel,
		QLen: n * (2*s.limits.Slots + 2), // per slot a receive and a reply; two for the connection
	})
	if err != nil {
		return err
	}
	s.requests, err = s.ia.NewDispatcher(dat.DispatcherConfig{Mode: dat.ModeChannel, QLen: backlog})
	if err != nil {
		return err
	}
	s.psp, err = s.ia.NewPSP(dat.PSPConfig{Addr: cfg.Addr, Qual: cfg.Qual, Dispatcher: s.requests, Backlog: backlog})
	return err
}

// Qual is the port it listens on.
func (s *Server) Qual() uint64 { return s.psp.Qual() }

// Addr is the address it listens on.
func (s *Server) Addr() net.Addr { return s.psp.Addr() }

// Run serves until ctx is done. Then it ends the connections in order, so that
// what it has promised to keep is kept and said, and returns.
func (s *Server) Run(ctx context.Context) error {
	stop := ctx.Done()
	for !s.stopping || s.live > 0 {
		select {
		case ev, ok := <-s.events.C():
			if !ok {
				return errors.Join(errAborted, s.close())
			}
			s.completed(ev)
		case ev := <-s.requests.C():
			s.answer(ev)
		case <-stop:
			stop = nil
			s.stop()
		}
		if s.batch.due(len(s.events.C())) {
			s.commit()
		}
	}
	return s.close()
}

// stop begins the end: nobody new, and a goodbye to the others.
func (s *Server) stop() {
	s.stopping = true
	s.commit()
	if err := s.psp.Close(); err != nil {
		s.log.Warn("stop listening", zap.Error(err))
	}
	for len(s.requests.C()) > 0 {
		s.answer(<-s.requests.C())
	}
	for _, c := range s.sessions {
		if c != nil {
			c.disconnect(dat.Graceful)
		}
	}
}

// answer answers a connection request.
func (s *Server) answer(ev dat.Event) {
	cr := dat.RequestOf(ev)
	if cr == nil {
		return
	}
	hello, status := s.hello(cr)
	number := s.free()
	if status == proto.OK && (number < 0 || s.stopping) {
		status = proto.Full
	}
	if status == proto.OK {
		c, err := s.open(number, hello)
		if err == nil {
			err = c.accept(cr)
		}
		if err == nil {
			s.sessions[number] = c
			s.live++
			s.log.Debug("client", zap.Int("session", number), zap.Any("limits", c.limits))
			return
		}
		s.log.Warn("can't take a client", zap.Error(err))
		if c != nil {
			c.close()
		}
		status = proto.Full
	}
	refusal := proto.Welcome{Limits: s.limits, Status: status}
	if err := cr.Reject(refusal.Append(nil)); err != nil && !errors.Is(err, dat.ErrInvalidHandle) {
		s.log.Debug("reject", zap.Error(err))
	}
}

// hello reads the limits that a client wants and cuts them to what there is.
func (s *Server) hello(cr *dat.CR) (proto.Limits, proto.Status) {
	param, err := cr.Query()
	if err != nil {
		return proto.Limits{}, proto.Mismatch
	}
	hello, err := proto.ParseHello(param.Private)
	if err != nil {
		s.log.Debug("hello", zap.Error(err))
		return proto.Limits{}, proto.Mismatch
	}
	return proto.Limits{
		Slots: min(hello.Slots, s.limits.Slots),
		Block: min(hello.Block, s.limits.Block),
	}, proto.OK
}

// free finds a number for a session, or -1.
func (s *Server) free() int {
	for i, c := range s.sessions {
		if c == nil {
			return i
		}
	}
	return -1
}

// completed handles an event of a session.
func (s *Server) completed(ev dat.Event) {
	e := dat.EndpointOf(ev)
	if _, ok := ev.DTO(); ok {
		if c := s.sessions[sessionOf(ev.Cookie)]; c != nil && c.ep == e {
			c.completed(ev)
		}
		return
	}
	if ev.Number == dat.Established {
		return
	}
	// The last event of a connection, whatever its end.
	for i, c := range s.sessions {
		if c != nil && c.ep == e {
			s.log.Debug("client gone", zap.Int("session", i), zap.Error(ev.Err()))
			s.sessions[i] = nil
			s.live--
			c.close()
		}
	}
}

// close gives back what New made; Run's last step, or New's after an error.
func (s *Server) close() error {
	var errs []error
	if s.psp != nil {
		errs = append(errs, s.psp.Close())
	}
	for _, d := range []*dat.Dispatcher{s.requests, s.events} {
		if d != nil {
			errs = append(errs, d.Close())
		}
	}
	return errors.Join(errs...)
}
