package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"godat/examples/blockstore/proto"
	"godat/examples/blockstore/store"
	dat "godat/runtime"
)

// Config configures a server. Zero values take the defaults.
type Config struct {
	Addr   string // host:port; empty means all addresses, and a port that the provider chooses
	Store  *store.Store
	Limits proto.Limits // the most that a client gets; default 64 slots of 1 MiB
	// Sessions is how many clients there may be at a time; each has a window of memory.
	// Default 64.
	Sessions int
	Log      *zap.Logger
}

// Server serves one store.
type Server struct {
	// Immutable after New.
	store  *store.Store
	limits proto.Limits
	log    *zap.Logger
	ln     *dat.Listener

	// Owned by Run.
	batch batch
	dirty []*session // sessions with replies to flush
}

// drainTime is how long a graceful disconnect may take.
const drainTime = 2 * time.Second

// errAborted means that the adapter was closed while the server ran.
var errAborted = errors.New("server: the adapter was closed")

// New listens. The caller must call Run, which serves.
func New(ia *dat.IA, cfg Config) (*Server, error) {
	s := &Server{
		store: cfg.Store, log: cfg.Log,
		limits: proto.Limits{
			Slots: cmp.Or(cfg.Limits.Slots, 64),
			Block: cmp.Or(cfg.Limits.Block, proto.MaxBlock),
		},
		batch: newBatch(),
	}
	if s.log == nil {
		s.log = zap.NewNop()
	}
	err := s.limits.Check()
	if err == nil {
		s.ln, err = ia.Listen(context.Background(), cfg.Addr, dat.ConnConfig{
			Depth: s.limits.Slots, Message: proto.MessageLen, Conns: cmp.Or(cfg.Sessions, 64),
			Setup: s.open, Refusal: proto.Welcome{Limits: s.limits, Status: proto.Full}.Append(nil),
			Attr: &dat.EndpointAttr{DrainTimeout: drainTime},
		})
	}
	if err != nil {
		return nil, fmt.Errorf("server: listen on %s: %w", cfg.Addr, err)
	}
	return s, nil
}

// Addr is the address that the server listens on, host:port.
func (s *Server) Addr() string { return s.ln.Addr() }

// Run serves until ctx is done. Then it commits the batch, sends the answers that are
// due, ends the connections in order, and returns.
func (s *Server) Run(ctx context.Context) error {
	for {
		select {
		case ev := <-s.ln.Events():
			if ev.Number == dat.Closed {
				return errors.Join(errAborted, s.ln.Close())
			}
			s.handle(ev)
		case ev := <-s.ln.Requests():
			s.answer(dat.RequestOf(ev))
		case <-ctx.Done():
			s.commit()
			s.flush()
			return s.ln.Shutdown(context.WithoutCancel(ctx))
		}
		waiting := len(s.ln.Events())
		if s.batch.due(waiting) {
			s.commit()
		}
		if waiting == 0 {
			s.flush()
		}
	}
}

// answer answers a connection request.
func (s *Server) answer(cr *dat.CR) {
	param, err := cr.Query()
	if err != nil {
		return
	}
	if _, err = proto.ParseHello(param.Private); err != nil {
		err = errors.Join(err, cr.Reject(proto.Welcome{Limits: s.limits, Status: proto.Mismatch}.Append(nil)))
	} else {
		_, err = s.ln.Accept(cr, nil)
	}
	if err != nil {
		s.log.Warn("can't take a client", zap.Error(err))
	}
}

// handle handles an event of a session.
func (s *Server) handle(ev dat.Event) {
	c := dat.ConnOf(ev).Context.(*session)
	if b := c.conn.Message(ev); b != nil {
		c.check(c.received(b))
	}
	if ev.Ended() {
		s.log.Debug("client gone", zap.Stringer("client", c.conn), zap.Error(ev.Err()))
		c.close()
	}
}

// flush sends the replies that are ready, all of one session together.
func (s *Server) flush() {
	for _, c := range s.dirty {
		c.dirty = false
		if !c.gone {
			c.check(c.conn.Flush())
		}
	}
	clear(s.dirty)
	s.dirty = s.dirty[:0]
}
