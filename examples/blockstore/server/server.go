// Package server stores blocks for clients, which call it by godat/runtime/rpc.
//
//	PUT ──► handler: reads the block from its client's memory ──► writer: stores all that wait
//	GET ──► handler: writes the block to its client's memory
//
// A handler reads a block by RDMA into memory that no client reaches, and gives it to the writer
// if it has the name that its client says. So a client that goes on writing to its own memory
// harms no other client. One that stalls holds the handlers of its calls, for 30 s at most.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"godat/examples/blockstore/proto"
	"godat/examples/blockstore/store"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
	"godat/runtime/rpc"
)

// Config configures a server. Zero values take the defaults.
type Config struct {
	Addr     string // host:port; empty means all addresses, and a port that the provider chooses
	Store    *store.Store
	Limits   proto.Limits // the most that a client gets; default 64 slots of 1 MiB
	Sessions int          // the most clients at a time; default 64
	Log      *zap.Logger
}

// handlers is how many requests are handled at a time. Each has memory for a block.
const handlers = 64

// Server serves one store.
type Server struct {
	store  *store.Store
	limits proto.Limits
	log    *zap.Logger
	pz     *mem.PZ
	memory *mem.LMR
	free   chan int // where in memory there is room for a block
	rpc    *rpc.Server
	puts   chan put      // to the writer
	wrote  chan struct{} // closed when the writer has ended
}

// New listens. The caller must call Run, which serves.
func New(ia *dat.IA, cfg Config) (*Server, error) {
	s := &Server{
		store: cfg.Store, log: cmp.Or(cfg.Log, zap.NewNop()),
		limits: proto.Limits{Slots: cmp.Or(cfg.Limits.Slots, 64), Block: cmp.Or(cfg.Limits.Block, proto.MaxBlock)},
		free:   make(chan int, handlers), puts: make(chan put, handlers), wrote: make(chan struct{}),
	}
	err := s.limits.Check()
	if err == nil {
		err = s.listen(ia, cfg)
	}
	if err != nil {
		return nil, fmt.Errorf("server: listen on %s: %w", cfg.Addr, err)
	}
	return s, nil
}

func (s *Server) listen(ia *dat.IA, cfg Config) (err error) {
	if s.pz, err = ia.NewPZ(); err != nil {
		return err
	}
	if s.memory, err = s.pz.Register(make([]byte, handlers*s.limits.Block), hw.LocalRead|hw.LocalWrite); err != nil {
		return errors.Join(err, s.pz.Close())
	}
	for i := range handlers {
		s.free <- i * s.limits.Block
	}
	s.rpc, err = rpc.Listen(context.Background(), ia, cfg.Addr, rpc.Config{
		Calls: s.limits.Slots, Message: proto.Message, Conns: cmp.Or(cfg.Sessions, 64), PZ: s.pz, Methods: proto.Methods,
	})
	if err != nil {
		return errors.Join(err, s.release())
	}
	return nil
}

// release frees the handlers' memory.
func (s *Server) release() error { return errors.Join(s.memory.Free(), s.pz.Close()) }

// Addr is the address that the server listens on, host:port.
func (s *Server) Addr() string { return s.rpc.Addr() }

// Run serves until ctx is done. Then it answers the requests that it has begun, ends the
// connections in order, and returns.
func (s *Server) Run(ctx context.Context) error {
	go s.write()
	err := s.rpc.Serve(ctx, handlers, s.handle)
	close(s.puts)
	<-s.wrote
	return errors.Join(err, s.release())
}
