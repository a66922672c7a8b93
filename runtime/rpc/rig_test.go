package rpc

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// within bounds what ends soon unless something is wrong.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func open(t testing.TB, name string) *dat.IA {
	ia, err := dat.Open(t.Context(), name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ia.Close()) })
	return ia
}

// onEach runs a test over each provider that needs no device, or in the guest over its device.
func onEach(t *testing.T, test func(t *testing.T, ia *dat.IA)) {
	for _, name := range adapters {
		t.Run(name, func(t *testing.T) { test(t, open(t, name)) })
	}
}

// pair makes an adapter with a server and a client of it, which the test closes: in the bubble that they belong to.
func pair(t testing.TB) (*dat.IA, *Server, *Client) {
	ia, err := dat.Open(t.Context(), "loop")
	require.NoError(t, err)
	s, err := Listen(t.Context(), ia, ":0", Config{})
	require.NoError(t, err)
	c, err := Dial(t.Context(), ia, s.Addr(), Config{})
	require.NoError(t, err)
	return ia, s, c
}

// serve makes a server with a handler, and closes it behind the test.
func serve(t testing.TB, ia *dat.IA, cfg Config, workers int, handler func(*Request)) *Server {
	t.Helper()
	s, err := Listen(t.Context(), ia, ":0", cfg)
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() { handle(s, workers, handler) })
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		serving.Wait()
	})
	return s
}

// handle handles requests in so many goroutines, by handlers that answer themselves.
func handle(s *Server, workers int, handler func(*Request)) {
	var all sync.WaitGroup
	closed := make(chan struct{})
	for range workers {
		all.Go(func() {
			for {
				select {
				case ev := <-s.Requests():
					if ev.Number == event.Closed {
						close(closed)
						return
					}
					handler(RequestOf(ev))
				case <-closed:
					return
				}
			}
		})
	}
	all.Wait()
}

// next takes a request; nil when the server is closed.
func (s *Server) nextRequest() *Request { return RequestOf(<-s.Requests()) }

func dial(t testing.TB, ia *dat.IA, s *Server, cfg Config) *Client {
	t.Helper()
	c, err := Dial(within(t), ia, s.Addr(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// alloc makes memory for a test.
func alloc(t testing.TB, pz *mem.PZ, size int) *mem.LMR {
	t.Helper()
	l, err := pz.Alloc(size, hw.AllPrivileges)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Free()) })
	return l
}

// echo answers a request with its payload.
func echo(r *Request) { _ = r.Reply(r.Payload()) }

// silent never answers before the caller has gone.
func silent(r *Request) {
	<-r.Context().Done()
	_ = r.Fail(CodeUser, "nobody waits")
}

// piece is more bytes than a transfer moves at a time.
const piece = 16 << 20
