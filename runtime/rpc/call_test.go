package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/mem"
	dat "godat/runtime"
)

func TestEachCallerGetsItsOwnAnswer(t *testing.T) {
	const callers, calls = 48, 60
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s := serve(t, ia, Config{Calls: 8, Message: 512}, 5, func(r *Request) {
			if r.Method() == 7 {
				_ = r.Fail(CodeUser+r.Method(), "not "+string(r.Payload()))
				return
			}
			echo(r)
		})
		c := dial(t, ia, s, Config{Message: 512})
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				dst := make([]byte, 0, 512)
				for n := range calls {
					text := fmt.Appendf(nil, "%d/%d %s", i, n, bytes.Repeat([]byte{'x'}, rand.IntN(400)))
					method := uint16(n % 9)
					got, err := c.Call(within(t), Call{Method: method, Payload: text}, dst)
					if method == 7 {
						var failed *Error
						if assert.ErrorAs(t, err, &failed) {
							assert.Equal(t, &Error{CodeUser + 7, "not " + string(text)}, failed)
						}
						continue
					}
					if !assert.NoError(t, err) || !assert.Equal(t, string(text), string(got)) {
						return
					}
				}
			})
		}
		all.Wait()
	})
}

func TestAnswersComeInAnyOrder(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		c := dial(t, ia, s, Config{})
		var calls sync.WaitGroup
		for i := range 3 {
			calls.Go(func() {
				got, err := c.Call(within(t), Call{Payload: []byte{byte(i)}}, nil)
				assert.NoError(t, err)
				assert.Equal(t, []byte{byte(i)}, got)
			})
		}
		var held []*Request
		for range 3 {
			held = append(held, s.nextRequest())
		}
		for i := range held {
			require.NoError(t, held[2-i].Reply(held[2-i].Payload()))
		}
		calls.Wait()
		require.NoError(t, s.Close())
		assert.Nil(t, s.nextRequest(), "the last event")
		require.NoError(t, s.Close())
	})
}

func TestTheServerReadsAndWritesTheCallersMemory(t *testing.T) {
	const size = 1 << 20
	onEach(t, func(t *testing.T, ia *dat.IA) {
		var memory *mem.LMR
		s := serve(t, ia, Config{}, 1, func(r *Request) {
			n := r.SourceLen()
			err := r.Read(memory.Segment(0, n), 0)
			if err == nil {
				for i, b := range memory.Bytes()[:n] {
					memory.Bytes()[i] = b + 1
				}
				err = r.Write(memory.Segment(0, min(n, r.SinkLen())), 0)
			}
			if err != nil {
				_ = r.Fail(CodeUser, err.Error())
				return
			}
			_ = r.Reply(nil)
		})
		memory = alloc(t, s.PZ(), size)
		c := dial(t, ia, s, Config{})
		mine := alloc(t, c.PZ(), 2*size)
		want := make([]byte, size)
		for i := range size {
			mine.Bytes()[i], want[i] = byte(i), byte(i)+1
		}
		_, err := c.Call(within(t), Call{Source: mine.Remote(0, size), Sink: mine.Remote(size, size)}, nil)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, mine.Bytes()[size:]))
		_, err = c.Call(within(t), Call{Source: mine.Remote(0, 8)}, nil)
		require.NoError(t, err, "no sink, no bytes")
	})
}

func TestAPartThatTheCallerDoesNotHaveIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		refused := make(chan error, 4)
		s := serve(t, ia, Config{}, 1, func(r *Request) {
			refused <- r.Read(mem.Segment{Len: 9}, 0)
			refused <- r.Read(mem.Segment{Len: 1}, 8)
			refused <- r.Read(mem.Segment{Len: 1}, -1)
			refused <- r.Write(mem.Segment{Len: 1}, 0)
			_ = r.Reply(nil)
		})
		c := dial(t, ia, s, Config{})
		mine := alloc(t, c.PZ(), 8)
		_, err := c.Call(within(t), Call{Source: mine.Remote(0, 8)}, nil)
		require.NoError(t, err)
		for range 4 {
			require.ErrorIs(t, <-refused, hw.ErrLength)
		}
	})
}

func TestADeadlineAndACancelReachTheHandler(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		why, begun, release := make(chan error, 1), make(chan bool, 1), make(chan bool, 6)
		s := serve(t, ia, Config{Calls: 2}, 1, func(r *Request) {
			begun <- true
			<-r.Context().Done()
			why <- r.Context().Err()
			<-release
			_ = r.Reply(nil)
		})
		c := dial(t, ia, s, Config{})
		for range 5 { // more than there are slots
			ctx, cancel := context.WithCancelCause(t.Context())
			enough := errors.New("enough")
			go func() {
				<-begun
				cancel(enough)
			}()
			_, err := c.Call(ctx, Call{}, nil)
			var failed *CallError
			require.ErrorAs(t, err, &failed)
			assert.True(t, failed.MayHaveRun)
			require.ErrorIs(t, err, enough)
			require.ErrorIs(t, <-why, context.Canceled)
			release <- true
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := c.Call(ctx, Call{}, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Error(t, <-why)
		<-begun
		release <- true
	})
}

func TestACancelWaitsForABuffer(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		begun, heard := make(chan bool), make(chan error, 1)
		s := serve(t, ia, Config{}, 1, func(r *Request) {
			begun <- true
			<-r.Context().Done()
			heard <- r.Context().Err()
			_ = r.Reply(nil)
		})
		c := dial(t, ia, s, Config{})
		ctx, cancel := context.WithCancel(t.Context())
		failed := called(ctx, c, 1)
		<-begun
		var all []*mem.Buffer
		for len(all) < c.cfg.receives() { // that of the call comes back, too
			b, err := c.now.link.conn.WaitBuffer(within(t))
			require.NoError(t, err)
			all = append(all, b)
		}
		cancel()
		require.ErrorIs(t, <-failed, context.Canceled)
		assert.Empty(t, heard, "there was no buffer")
		for _, b := range all {
			c.now.link.conn.Release(b)
		}
		require.ErrorIs(t, <-heard, context.Canceled)
	})
}

func TestTheMemoryOfACallIsTheCallersWhenItReturns(t *testing.T) {
	const size = 4 << 20
	onEach(t, func(t *testing.T, ia *dat.IA) {
		var memory *mem.LMR
		s := serve(t, ia, Config{}, 2, func(r *Request) {
			if r.Method() == 1 { // a transfer that does not let go
				moves(r, 1)
				defer moves(r, -1)
			}
			for r.Context().Err() == nil {
				if r.Write(memory.Segment(0, size), 0) != nil {
					break
				}
			}
			if r.Method() == 1 {
				for r.Conn().Do(context.Background(), ep.DTO{Op: hw.OpWrite, Segment: memory.Segment(0, size), Remote: r.sink}) == nil {
				}
			}
			if r.Method() != 1 {
				_ = r.Reply(nil)
			}
		})
		memory = alloc(t, s.PZ(), size)
		for method := range uint16(2) {
			cfg := Config{Patience: 50 * time.Millisecond}
			if method == 1 {
				cfg.Stall = 200 * time.Millisecond // over TCP something moves all the time
			}
			c := dial(t, ia, s, cfg)
			mine := alloc(t, c.PZ(), size)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			_, err := c.Call(ctx, Call{Method: method, Sink: mine.Remote(0, size)}, nil)
			cancel()
			if method == 1 || err != nil { // a server may answer at the deadline
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
			for i := range mine.Bytes() {
				mine.Bytes()[i] = 1
			}
			_, err = c.Call(within(t), Call{Method: 2}, nil)
			if method == 1 {
				require.ErrorIs(t, err, ErrEnded, "the client broke the connection")
			}
			require.Equal(t, size, bytes.Count(mine.Bytes(), []byte{1}))
		}
	})
}

// moves says that something of a request moves.
func moves(r *Request, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moves += n
}

func TestTheEndOfAConnectionFailsAllItsCalls(t *testing.T) {
	const callers = 20
	for name, end := range map[string]func(s *Server, c *Client) error{
		"the server's":     func(s *Server, _ *Client) error { return s.Close() },
		"the client's":     func(_ *Server, c *Client) error { return c.Close() },
		"the connection's": func(_ *Server, c *Client) error { return c.now.link.conn.Endpoint.Disconnect(ep.Abrupt) },
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, ia *dat.IA) {
				begun := make(chan bool, callers)
				s := serve(t, ia, Config{}, callers, func(r *Request) {
					begun <- true
					silent(r)
				})
				c := dial(t, ia, s, Config{Calls: 8})
				failed := make(chan error, callers)
				for range callers {
					go func() {
						_, err := c.Call(within(t), Call{}, nil)
						failed <- err
					}()
				}
				for range 8 {
					<-begun
				}
				require.NoError(t, end(s, c))
				ran := 0
				for range callers {
					var err *CallError
					require.ErrorAs(t, <-failed, &err)
					require.ErrorIs(t, err, ErrEnded)
					if err.MayHaveRun {
						ran++
					}
				}
				assert.Equal(t, 8, ran, "the others waited for a slot")
				_, err := c.Call(within(t), Call{}, nil)
				require.ErrorIs(t, err, ErrEnded)
			})
		})
	}
}

func TestAPayloadThatIsTooLongIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		refused := make(chan error, 1)
		s := serve(t, ia, Config{Message: 100}, 1, func(r *Request) { refused <- r.Reply(make([]byte, 51)) })
		c := dial(t, ia, s, Config{Message: 50})
		_, err := c.Call(within(t), Call{Payload: make([]byte, 51)}, nil)
		require.ErrorIs(t, err, hw.ErrLength)
		_, err = c.Call(within(t), Call{Payload: make([]byte, 50)}, nil)
		var failed *Error
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, CodeTooLong, failed.Code)
		require.ErrorIs(t, <-refused, hw.ErrLength)
		_, err = c.Call(nil, Call{}, nil) //nolint:staticcheck // that is the test
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
	})
}

// Callers that give up at once send a cancel for each call, while the server takes its time.
func TestNeitherEndOutrunsTheOther(t *testing.T) {
	const callers, calls = 16, 200
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s := serve(t, ia, Config{Calls: 4, Message: 64}, 1, echo)
		c := dial(t, ia, s, Config{Calls: 32, Message: 64})
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for n := range calls {
					ctx, cancel := context.WithCancel(t.Context())
					if n%2 == 0 {
						go cancel()
					}
					_, err := c.Call(ctx, Call{Payload: []byte("x")}, nil)
					cancel()
					if err != nil && !assert.ErrorIs(t, err, context.Canceled) {
						return
					}
				}
			})
		}
		all.Wait()
		got, err := c.Call(within(t), Call{Payload: []byte("whole")}, nil)
		require.NoError(t, err)
		assert.Equal(t, "whole", string(got))
	})
}
