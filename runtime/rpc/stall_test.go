package rpc

import (
	"bytes"
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/fault"
	"godat/hw/iwarp"
	"godat/hw/loop"
	"godat/hw/sim"
	"godat/mem"
	dat "godat/runtime"
)

// onEachStalled runs a test over each provider that needs no device. The first request that
// a server posts never reaches its client.
func onEachStalled(t *testing.T, test func(t *testing.T, server, client *dat.IA, stalls func() bool)) {
	for name, inner := range map[string]hw.Provider{
		"loop": loop.New(), "iwarp:127.0.0.1": iwarp.New(iwarp.Config{}), "sim": sim.New(sim.Config{Seed: 5}),
	} {
		t.Run(name, func(t *testing.T) {
			cfg := fault.Config{Bound: time.Hour}
			cfg.On[fault.LosePeer].Nth = 1
			stalled := fault.Wrap(inner, cfg)
			var ias []*dat.IA
			for _, provider := range []hw.Provider{stalled, inner} {
				ia, err := dat.Open(t.Context(), name, dat.WithProvider(provider))
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, ia.Close()) })
				ias = append(ias, ia)
			}
			test(t, ias[0], ias[1], func() bool { return stalled.Fired(fault.LosePeer) > 0 })
		})
	}
}

func TestAClientThatStallsHoldsNoHandler(t *testing.T) {
	soon, late, never := 20*time.Millisecond, 5*time.Second, time.Hour
	for name, tc := range map[string]struct {
		server Config
		cancel bool
		want   error
	}{
		"and the call has no end":         {Config{Stall: soon, Patience: never}, false, hw.ErrTimeout},
		"and the call's context is ended": {Config{Stall: never, Patience: soon}, true, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			onEachStalled(t, func(t *testing.T, server, client *dat.IA, stalls func() bool) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				read := make(chan error, 1)
				s := serve(t, server, tc.server, 1, func(r *Request) {
					if r.SourceLen() == 0 {
						echo(r)
						return
					}
					if tc.cancel {
						go func() {
							assert.Eventually(t, stalls, time.Minute, time.Millisecond)
							cancel()
						}()
					}
					read <- r.ReadBytes(make([]byte, 8), 0)
					_ = r.Reply(nil) // the connection has ended
				})
				c := dial(t, client, s, Config{Patience: late})
				_, err := c.Call(ctx, Call{SourceBytes: make([]byte, 8)}, nil)
				require.Error(t, err)
				err = <-read
				require.ErrorIs(t, err, tc.want)
				require.ErrorContains(t, err, "method 0, call 0x10000 of ")
				got, err := dial(t, client, s, Config{}).Call(within(t), Call{Payload: []byte("another")}, nil)
				require.NoError(t, err)
				assert.Equal(t, "another", string(got))
			})
		})
	}
}

func TestADeadlineBoundsATransferThoughNoCancelComes(t *testing.T) {
	onEachStalled(t, func(t *testing.T, server, client *dat.IA, _ func() bool) {
		read := make(chan error, 1)
		s := serve(t, server, Config{Stall: time.Hour, Patience: 20 * time.Millisecond}, 1, func(r *Request) {
			read <- r.ReadBytes(make([]byte, 8), 0)
			_ = r.Reply(nil) // the connection has ended
		})
		c := stingy(t, client, s, 0)
		mine, err := c.Alloc(8, hw.AllPrivileges)
		require.NoError(t, err)
		source, err := mine.Remote(0, 8).MarshalBinary()
		require.NoError(t, err)
		require.NoError(t, c.SendBytes(encoded(header{kind: kindCall, flags: flagSource, call: 1 << 16, timeout: 100}, source...)))
		require.ErrorIs(t, <-read, context.DeadlineExceeded)
	})
}

func TestALongTransferIsMovedWhole(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		const size = piece + 5
		s := serve(t, ia, Config{}, 1, func(r *Request) {
			body := make([]byte, r.SourceLen()-1)
			assert.NoError(t, r.ReadBytes(body, 1))
			assert.NoError(t, r.WriteBytes(body, 1))
			_ = r.Reply(nil)
		})
		c := dial(t, ia, s, Config{})
		out, in := make([]byte, size), make([]byte, size)
		for i := range 20 {
			out[i], out[size-1-i] = byte(i+1), byte(i+100)
		}
		_, err := c.Call(within(t), Call{SourceBytes: out, SinkBytes: in}, nil)
		require.NoError(t, err)
		require.Zero(t, in[0])
		require.True(t, bytes.Equal(out[1:], in[1:]))
	})
}

func TestACallThatHasEndedMovesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		moved := make(chan error, 2)
		ctx, cancel := context.WithCancel(t.Context())
		s := serve(t, ia, Config{}, 1, func(r *Request) {
			if r.SinkLen() > 0 {
				cancel()
				<-r.Context().Done()
				moved <- r.WriteBytes([]byte("x"), 0)
			}
			echo(r)
		})
		c := dial(t, ia, s, Config{Patience: time.Hour})
		sink := make([]byte, 1)
		_, err := c.Call(ctx, Call{SinkBytes: sink}, nil)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, <-moved, context.Canceled)
		assert.Zero(t, sink[0])
		_, err = c.Call(within(t), Call{}, nil)
		require.NoError(t, err, "the connection is up")
	})
}

// stingy connects a client that has two receives for answers and makes so many calls.
func stingy(t *testing.T, ia *dat.IA, s *Server, calls uint32) *dat.Conn {
	t.Helper()
	c, err := ia.Dial(within(t), s.Addr(), dat.ConnConfig{Depth: 16, Private: hello{calls: 8, receives: 3, message: 64}.encode()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	for i := range calls {
		require.NoError(t, c.SendBytes(encoded(header{kind: kindCall, call: 1<<16 | i})))
	}
	return c
}

func TestAClientThatTakesNoAnswersHoldsNoShutdown(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s := serve(t, ia, Config{Stall: 20 * time.Millisecond}, 1, echo)
		for range 2 {
			c := stingy(t, ia, s, 3)
			for range 2 {
				h, _ := heard(t, c)
				require.EqualValues(t, kindAnswer, h.kind)
			}
			_, err := c.Receive(within(t))
			require.Error(t, err)
			require.NoError(t, within(t).Err(), "the server breaks the connection")
		}
		c := stingy(t, ia, s, 2)
		for range 2 {
			_, _ = heard(t, c)
		}
		require.NoError(t, s.Shutdown(within(t)), "its END does not leave")
	})
}

// A client that takes one answer, and each time nearly too late, gets all of them.
func TestAClientThatIsSlowGetsItsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stall, calls = time.Minute, 6
		ia := open(t, "loop")
		s := serve(t, ia, Config{Calls: calls, Stall: stall}, 1, echo)
		c := stingy(t, ia, s, calls)
		for i := range uint32(calls) {
			h, _ := heard(t, c)
			require.EqualValues(t, kindAnswer, h.kind)
			time.Sleep(stall - time.Second)
			require.NoError(t, c.SendBytes(encoded(header{kind: kindCredit, taken: i + 1})))
		}
		time.Sleep(2 * stall)
		require.NoError(t, s.Shutdown(t.Context()))
		h, _ := heard(t, c)
		require.EqualValues(t, kindEnd, h.kind)
	})
}

func TestAServersErrorsSayOfWhichCallTheyAre(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, err := Listen(t.Context(), ia, ":0", Config{Message: 64})
		require.NoError(t, err)
		c := dial(t, ia, s, Config{})
		call := func() *Request {
			go func() { _, _ = c.Call(within(t), Call{Method: 7}, nil) }()
			return s.nextRequest()
		}
		r := call()
		name := r.String()
		assert.Contains(t, name, "method 7, call 0x10000 of "+r.Conn().String())
		for _, err := range []error{
			r.Read(mem.Segment{Len: 1}, 0), r.WriteBytes([]byte("x"), 0), r.Reply(make([]byte, 65)),
		} {
			require.ErrorIs(t, err, hw.ErrLength)
			require.ErrorContains(t, err, name)
		}
		require.ErrorContains(t, r.Reply(nil), r.Conn().String())

		r = call()
		name = r.String()
		over, cancel := context.WithCancel(t.Context())
		cancel()
		err = s.Shutdown(over)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "1 requests without an answer")
		require.ErrorContains(t, err, name)
		err = r.Reply(nil)
		require.ErrorIs(t, err, ErrEnded)
		require.ErrorContains(t, err, name)
	})
}

// frozen connects a client that sends CANCELs without end while nothing of the server's
// reaches it any more. The server has no buffers then.
func frozen(t *testing.T, ia *dat.IA, s *Server) {
	t.Helper()
	c, err := ia.Dial(within(t), s.Addr(), dat.ConnConfig{Depth: 16, Private: hello{calls: 8, receives: 1000, message: 64}.encode()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	for range 400 {
		b, err := c.WaitBuffer(within(t))
		require.NoError(t, err)
		_, _ = b.Write(encoded(header{kind: kindCancel}))
		require.NoError(t, c.Send(b))
		synctest.Wait() // a guess at the server's receives would do
	}
}

func TestAClientThatIsFrozenHoldsNoShutdownAndNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fault.Config{Bound: time.Hour}
		cfg.On[fault.LosePeer].Every = 1
		silent, err := dat.Open(t.Context(), "loop", dat.WithProvider(fault.Wrap(loop.New(), cfg)))
		require.NoError(t, err)
		defer silent.Close()
		ia := open(t, "loop")
		s := serve(t, silent, Config{Calls: 2, Stall: time.Minute}, 1, echo)
		before := runtime.NumGoroutine()
		frozen(t, ia, s)
		synctest.Wait()
		assert.Less(t, runtime.NumGoroutine(), before+10)
		begin := time.Now()
		_ = s.Shutdown(t.Context())
		assert.Less(t, time.Since(begin), 2*time.Minute)
	})
}
