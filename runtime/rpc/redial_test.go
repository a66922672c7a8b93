package rpc

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
	"godat/mem"
	dat "godat/runtime"
)

// redialing are the settings of a client that connects anew.
var redialing = Config{Redial: 30 * time.Millisecond}

// crash ends a connection.
func crash(t *testing.T, c *dat.Conn) { require.NoError(t, c.Endpoint.Disconnect(ep.Abrupt)) }

func TestAClientConnectsAnewAndKeepsItsMemory(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		var memory *mem.LMR
		s := serve(t, ia, Config{}, 1, func(r *Request) {
			if err := r.Write(memory.Segment(0, 8), 0); err != nil {
				_ = r.Fail(CodeUser, err.Error())
				return
			}
			_ = r.Reply(nil)
		})
		memory = alloc(t, s.PZ(), 8)
		c := dial(t, ia, s, redialing)
		mine := alloc(t, c.PZ(), 8)
		for i := range byte(4) {
			memory.Bytes()[7] = i
			_, err := c.Call(within(t), Call{Sink: mine.Remote(0, 8)}, nil)
			require.NoError(t, err)
			require.Equal(t, i, mine.Bytes()[7])
			require.EqualValues(t, i, c.Snapshot().Reconnects)
			c.mu.Lock()
			now := c.now
			c.mu.Unlock()
			crash(t, now.link.conn)
			<-now.ended
		}
	})
}

func TestACallThatMayHaveRunIsMadeAgainOnlyIfItIsIdempotent(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		var runs atomic.Int32
		s := serve(t, ia, Config{}, 1, func(r *Request) {
			if runs.Add(1)%2 == 1 {
				_ = r.Conn().Endpoint.Disconnect(ep.Abrupt)
			}
			echo(r)
		})
		c := dial(t, ia, s, redialing)
		got, err := c.Call(within(t), Call{Payload: []byte("again"), Idempotent: true}, nil)
		require.NoError(t, err)
		assert.Equal(t, "again", string(got))
		assert.EqualValues(t, 2, runs.Load())
		_, err = c.Call(within(t), Call{Payload: []byte("once")}, nil)
		var failed *CallError
		require.ErrorAs(t, err, &failed)
		assert.True(t, failed.MayHaveRun)
		require.ErrorIs(t, err, ErrEnded)
		assert.EqualValues(t, 3, runs.Load())
		got, err = c.Call(within(t), Call{Payload: []byte("next")}, nil)
		require.NoError(t, err, "the client has another connection")
		assert.Equal(t, "next", string(got))
	})
}

func TestACallThatHasNotRunWaitsForTheNextServer(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		first, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		at := first.Addr()
		c := dial(t, ia, first, redialing)
		held := called(t.Context(), c, 1)
		r := first.nextRequest()
		down := make(chan error, 1)
		go func() { down <- first.Shutdown(within(t)) }()
		require.Eventually(t, first.drains, time.Minute, time.Millisecond)
		refused := called(within(t), c, 1)
		sent(t, c, 2, 0)
		require.Eventually(t, func() bool { return len(c.now.free) == cap(c.now.free)-1 }, time.Minute, time.Millisecond, "this server refuses it")
		require.NoError(t, r.Reply(nil))
		require.NoError(t, <-held)
		require.NoError(t, <-down)

		enough := errors.New("enough")
		var failed *CallError
		require.Eventually(t, func() bool { // until an attempt has failed
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, enough)
			defer cancel()
			_, err = c.Call(ctx, Call{}, nil)
			require.ErrorAs(t, err, &failed)
			require.ErrorIs(t, err, enough)
			require.ErrorContains(t, err, at)
			require.False(t, failed.MayHaveRun)
			return errors.Is(err, event.Error(event.PeerRejected)) || errors.Is(err, event.Error(event.NonPeerRejected)) || errors.Is(err, event.Error(event.Unreachable))
		}, time.Minute, time.Millisecond, "%v", err)
		require.Empty(t, refused)

		second, err := Listen(t.Context(), ia, at, Config{})
		require.NoError(t, err)
		go handle(second, 1, echo)
		require.NoError(t, <-refused)
		require.NoError(t, second.Shutdown(within(t)))
	})
}

func TestACallThatWaitsForAConnectionEndsWithItsClientOrAdapter(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		server, err := dat.Open(t.Context(), ia.Name())
		require.NoError(t, err)
		s, err := Listen(t.Context(), server, ":0", Config{})
		require.NoError(t, err)
		closed, left := dial(t, ia, s, redialing), dial(t, ia, s, redialing)
		require.NoError(t, s.Close())
		require.NoError(t, server.Close())
		<-closed.now.ended
		<-left.now.ended
		failed, others := called(t.Context(), closed, 3), called(t.Context(), left, 3)
		require.NoError(t, closed.Close())
		for range 3 {
			err := <-failed
			require.ErrorIs(t, err, ErrEnded)
		}
		_, err = closed.Call(t.Context(), Call{}, nil)
		require.ErrorIs(t, err, net.ErrClosed)
		require.NoError(t, closed.Close())
		require.NoError(t, ia.Close())
		for range 3 {
			err := <-others
			require.ErrorIs(t, err, ErrEnded)
			require.ErrorIs(t, err, hw.ErrInvalidHandle)
		}
		_, err = Dial(t.Context(), ia, s.Addr(), Config{Redial: -1})
		require.ErrorIs(t, err, hw.ErrInvalidParameter)
	})
}

// The call has run on a connection that broke, and waits for the next one in vain.
func TestACallThatRanOnAnEarlierConnectionMayHaveRun(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		c := dial(t, ia, s, redialing)
		ctx, cancel := context.WithCancel(t.Context())
		answered := make(chan error, 1)
		go func() {
			_, err := c.Call(ctx, Call{Idempotent: true}, nil)
			answered <- err
		}()
		r := s.nextRequest()
		ended := c.now.ended
		require.NoError(t, s.Close())
		<-ended
		require.ErrorIs(t, r.Reply(nil), ErrEnded)
		require.Empty(t, answered)
		cancel()
		var failed *CallError
		require.ErrorAs(t, <-answered, &failed)
		require.ErrorIs(t, failed, context.Canceled)
		assert.True(t, failed.MayHaveRun)
	})
}

// A call that breaks its connection is made again after pauses that grow, and not without end.
func TestACallThatBreaksEachConnectionIsMadeAFewTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ia := open(t, "loop")
		var runs atomic.Int32
		s := serve(t, ia, Config{}, 1, func(r *Request) {
			runs.Add(1)
			_ = r.Conn().Endpoint.Disconnect(ep.Abrupt)
			echo(r)
		})
		c := dial(t, ia, s, Config{Redial: time.Second})
		began := time.Now()
		_, err := c.Call(t.Context(), Call{Idempotent: true}, nil)
		require.ErrorIs(t, err, ErrEnded)
		require.ErrorContains(t, err, "10 connections have ended under it")
		var failed *CallError
		require.ErrorAs(t, err, &failed)
		assert.True(t, failed.MayHaveRun)
		assert.EqualValues(t, 10, runs.Load())
		assert.Greater(t, time.Since(began), time.Second)
	})
}

func TestPausesBeginAnewBehindAConnectionThatHasLived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ia := open(t, "loop")
		s := serve(t, ia, Config{}, 1, echo)
		c := dial(t, ia, s, Config{Redial: time.Minute})
		again := func() time.Duration {
			began := time.Now()
			crash(t, c.current().link.conn)
			synctest.Wait()
			require.NoError(t, <-called(t.Context(), c, 1))
			return time.Since(began)
		}
		for range 20 {
			again()
		}
		assert.Greater(t, again(), 10*time.Second)
		time.Sleep(2 * time.Minute)
		assert.Less(t, again(), time.Second)
	})
}

// The server is restarted while a handler works for 5 s, and the next one listens at once.
func TestNoShortCallWaitsForALongOneThatDrains(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		first, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		long, short := dial(t, ia, first, redialing), dial(t, ia, first, Config{Redial: time.Second})
		slowest := make(chan time.Duration, 1)
		stop := make(chan bool)
		held := called(t.Context(), long, 1)
		r := first.nextRequest()
		go handle(first, 1, echo)
		go func() {
			worst := time.Duration(0)
			for {
				select {
				case <-stop:
					slowest <- worst
					return
				default:
				}
				began := time.Now()
				_, err := short.Call(within(t), Call{}, nil)
				assert.NoError(t, err)
				worst = max(worst, time.Since(began))
			}
		}()
		down := make(chan error, 1)
		go func() { down <- first.Shutdown(within(t)) }()
		second, err := Listen(within(t), ia, first.Addr(), Config{Await: true})
		require.NoError(t, err)
		go handle(second, 1, echo)
		require.Eventually(t, func() bool { return short.Snapshot().Reconnects == 1 && second.Snapshot().Answers > 10 }, time.Minute, time.Millisecond)
		close(stop)
		assert.Less(t, <-slowest, time.Second, "a busy machine has time; without one it takes some 50 ms")
		require.Empty(t, down)
		require.NoError(t, r.Reply(nil))
		require.NoError(t, <-held, "it goes on on its connection")
		require.NoError(t, <-down)
		require.NoError(t, second.Close())
	})
}
