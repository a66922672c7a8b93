package days

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"godat/hw/iwarp"
	dat "godat/runtime"
	"godat/runtime/inspect"
	"godat/runtime/rpc"
)

// stage is where a day is staged: a program with an adapter, whose page the visitor looks at, and another
// program with one.
type stage struct {
	*testing.T
	ctx   context.Context // until the day is over
	close context.CancelFunc
	ia    *dat.IA // of the program that the page is of
	other *dat.IA // of its peer
	page  http.Handler
	there http.Handler // the page of the peer's
	work  sync.WaitGroup
	mu    sync.Mutex
	last  []func() // in the opposite order; mu guards it
}

func newStage(t *testing.T) *stage {
	s := &stage{T: t}
	s.ctx, s.close = context.WithCancel(context.Background())
	s.ia, s.other = s.open("loop"), s.open("loop")
	s.page, s.there = inspect.New(s.ia), inspect.New(s.other)
	return s
}

func (s *stage) open(name string, options ...dat.Option) *dat.IA {
	ia := must(dat.Open(s.ctx, name, options...))
	s.atEnd(func() { _ = ia.Close() })
	return ia
}

// iwarp puts the stage on real connections of TCP, of which here and there say how they are made.
func (s *stage) iwarp(here, there iwarp.Config, options ...dat.Option) {
	s.ia = s.open("iwarp:127.0.0.1", append(options, dat.WithProvider(iwarp.New(here)))...)
	s.other = s.open("iwarp:127.0.0.1", append(options, dat.WithProvider(iwarp.New(there)))...)
	s.page, s.there = inspect.New(s.ia), inspect.New(s.other)
}

// atEnd does something when the day is over.
func (s *stage) atEnd(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = append(s.last, f)
}

func (s *stage) end() {
	s.close()
	s.mu.Lock()
	all := slices.Clone(s.last)
	s.mu.Unlock()
	for _, f := range slices.Backward(all) {
		f()
	}
	s.work.Wait()
}

// always does something again and again, with a pause, until the day is over.
func (s *stage) always(pause time.Duration, f func()) {
	s.work.Go(func() {
		for s.ctx.Err() == nil {
			f()
			select {
			case <-s.ctx.Done():
			case <-time.After(pause):
			}
		}
	})
}

// serve is a server of an adapter, with handlers.
func (s *stage) serve(ia *dat.IA, at string, cfg rpc.Config, handlers int, handler rpc.Handler) *rpc.Server {
	server := must(rpc.Listen(s.ctx, ia, at, cfg))
	s.work.Go(func() { _ = server.Serve(s.ctx, handlers, handler) })
	s.atEnd(func() { _ = server.Close() })
	return server
}

// client is one of a server.
func (s *stage) client(ia *dat.IA, server string, cfg rpc.Config) *rpc.Client {
	c := must(rpc.Dial(s.ctx, ia, server, cfg))
	s.atEnd(func() { _ = c.Close() })
	return c
}

// call makes a call that may take so long.
func (s *stage) call(c *rpc.Client, method uint16, takes time.Duration) error {
	ctx, cancel := context.WithTimeout(s.ctx, takes)
	defer cancel()
	_, err := c.Call(ctx, rpc.Call{Method: method, Payload: make([]byte, 100)}, nil)
	return err
}

// sleep is a handler's work.
func (s *stage) sleep(d time.Duration) {
	select {
	case <-s.ctx.Done():
	case <-time.After(d):
	}
}

// must is what a call has returned that must not fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
