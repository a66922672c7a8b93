package rpc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"godat/hw"
	dat "godat/runtime"
)

// Handler answers a request by what it returns, which may be a part of the request's payload. An
// [Error] that it returns, or wraps, is the caller's as [Request.Fail] sends it. Of any other error
// the caller gets the text, as an Error with CodeFailed. After the return the request must not be
// used: it is INVALID_STATE, also for the return of a handler that has called Reply or Fail itself. If an
// answer can't be sent, the caller's error says why there is none, and Config.Log tells
// the server's program.
type Handler func(r *Request) (answer []byte, err error)

// ListenAndServe is [Listen] and then [Server.Serve], for a program that needs no [Server].
func ListenAndServe(ctx context.Context, ia *dat.IA, address string, cfg Config, workers int, handler Handler) error {
	if handler == nil {
		return hw.Errorf("rpc.ListenAndServe", hw.InvalidParameter, hw.NoSubtype, "a nil handler")
	}
	s, err := Listen(ctx, ia, address, cfg)
	if err != nil {
		return err
	}
	return s.Serve(ctx, workers, handler)
}

// Serve handles requests in so many goroutines, its workers, in place of a program's own loop over
// Requests. When ctx ends it shuts the server down: [Server.Shutdown] may take Config.Grace, and
// Serve returns its error. A close of the server or of its adapter ends Serve, too, without an
// error. A nil ctx or handler is INVALID_PARAMETER, and serves nothing.
//
// Serve returns when the last handler has returned. After Grace the connections have ended, so
// [Request.Context], Read and Write hold no handler. What else a handler waits for holds Serve.
//
// The number of workers, of which less than one is one, is the most handlers that run at a time; further requests
// wait in Requests.
// A handler that waits, for a disk, a lock, an answer of another server, or its client's memory in a
// Read or Write, keeps its worker meanwhile. So take GOMAXPROCS workers where no handler waits, and
// else as many more as handlers may wait at a time: 64 for a store on a disk, for instance. An idle
// worker is a goroutine of some 3 KB. Handlers that call their own server may hold all workers, so
// that those calls wait for ever: take Config.Conns × Config.Calls workers then, one for each request
// that the server keeps.
//
// A handler that panics, or ends its goroutine (runtime.Goexit), fails its call with CodeFailed, and
// the others go on. The panic's value and its stack go to Config.Log, or without one to slog.Default:
// the caller does not get them.
func (s *Server) Serve(ctx context.Context, workers int, handler Handler) error {
	switch {
	case s == nil || s.ia == nil:
		return notMade("rpc.Server.Serve", "Server", "Listen")
	case ctx == nil:
		return hw.Errorf("rpc.Server.Serve", hw.InvalidParameter, hw.Arg1, "a nil context")
	case handler == nil:
		return hw.Errorf("rpc.Server.Serve", hw.InvalidParameter, hw.Arg3, "a nil handler")
	}
	if around, inner := s.cfg.AroundHandler, handler; around != nil {
		handler = func(r *Request) ([]byte, error) { return around(r, inner) }
	}
	down := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { down <- s.shutDownWithin(ctx, s.cfg.Grace) })
	s.hires(max(workers, 1))
	defer s.hires(-max(workers, 1))
	var all sync.WaitGroup
	for range max(workers, 1) {
		all.Go(func() { s.work(&all, handler) })
	}
	all.Wait()
	if stop() {
		return nil // ctx has not ended
	}
	return <-down
}

// hires counts the workers of Serve.
func (s *Server) hires(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.workers += n
}

func (s *Server) work(all *sync.WaitGroup, handler Handler) {
	for r := s.take(); r != nil; r = s.take() {
		s.serveOne(all, r, handler)
	}
}

func (s *Server) serveOne(all *sync.WaitGroup, r *Request, handler Handler) {
	returned := false
	defer func() {
		switch v := recover(); {
		case v != nil:
			s.panicked(r, v, debug.Stack())
			_ = r.Fail(CodeFailed, "the handler panicked: the server's log says where") // fails if it has answered
		case !returned: // runtime.Goexit, as testing's FailNow calls it
			_ = r.Fail(CodeFailed, "the handler ended its goroutine")
			all.Go(func() { s.work(all, handler) })
		}
	}()
	answer, err := handler(r)
	returned = true
	if err == nil {
		err = r.Reply(answer)
	} else {
		failed := failure(err)
		err = r.Fail(failed.Code, failed.Text)
	}
	if err != nil {
		s.log("an answer was not sent", err)
	}
}

// log says what no caller is told.
func (s *Server) log(what string, err error) {
	if s.cfg.Log != nil {
		s.cfg.Log.Warn(what, slog.Any("error", err))
	}
}

// panicked logs the panic of a handler: without a log of the program's to that of the process, since
// nobody else would hear of it.
func (s *Server) panicked(r *Request, value any, stack []byte) {
	log := s.cfg.Log
	if log == nil {
		log = slog.Default()
	}
	log.Error("a handler panicked", slog.Any("request", r), slog.String("value", fmt.Sprint(value)), slog.String("stack", string(stack)))
}

// failure is the caller's error for that of a handler.
func failure(err error) *Error {
	var failed *Error
	if errors.As(err, &failed) && failed != nil {
		return failed
	}
	return &Error{CodeFailed, err.Error()}
}

// shutDownWithin is Shutdown behind the end of a context.
func (s *Server) shutDownWithin(ended context.Context, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ended), grace)
	defer cancel()
	return s.Shutdown(ctx)
}
