package rpc

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

func TestACallWhoseContextHasEndedIsNotSent(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s := serve(t, ia, Config{}, 1, func(r *Request) {
			assert.Equal(t, "lives", string(r.Payload()))
			echo(r)
		})
		c := dial(t, ia, s, Config{Calls: 2})
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for range 10 {
			_, err := c.Call(gone, Call{Payload: []byte("gone")}, nil)
			var failed *CallError
			require.ErrorAs(t, err, &failed)
			require.False(t, failed.MayHaveRun)
			require.ErrorIs(t, err, context.Canceled)
		}
		_, err := c.Call(within(t), Call{Payload: []byte("lives")}, nil)
		require.NoError(t, err)
	})
}

func TestAReplyBehindTheEndOfItsConnectionSaysSo(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		c := dial(t, ia, s, Config{})
		var calls sync.WaitGroup
		calls.Go(func() { _, _ = c.Call(within(t), Call{}, nil) })
		r := s.nextRequest()
		b := r.Conn().Buffer()
		require.NoError(t, r.Conn().Close())
		require.ErrorIs(t, r.from.link.post(bare(b, kindCredit, 0)), ErrEnded, "whether or not the reader has heard of it")
		require.ErrorIs(t, r.Reply(nil), ErrEnded)
		calls.Wait()
		require.NoError(t, s.Close())
	})
}

func TestACallThatIsRefusedUntilItsTimeIsOverSaysThat(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		c := dial(t, ia, s, redialing)
		held := called(t.Context(), c, 1)
		r := s.nextRequest()
		down := make(chan error, 1)
		go func() { down <- s.Shutdown(within(t)) }()
		require.Eventually(t, s.drains, time.Minute, time.Millisecond)
		over := errors.New("its time is over")
		ctx, cancel := context.WithCancelCause(t.Context())
		refused := called(ctx, c, 1)
		require.Eventually(t, func() bool { return c.Snapshot().Failures == 1 && len(c.now.free) == cap(c.now.free)-1 }, time.Minute, time.Millisecond)
		cancel(over)
		err = <-refused
		require.ErrorIs(t, err, over)
		var failed *CallError
		require.ErrorAs(t, err, &failed)
		assert.False(t, failed.MayHaveRun)
		var answer *Error
		assert.NotErrorAs(t, err, &answer)
		require.NoError(t, r.Reply(nil))
		require.NoError(t, <-held)
		require.NoError(t, <-down)
	})
}

// A handler that waits for the end of its call and then fails it answers at the deadline.
func TestAFailureAtTheDeadlineIsTheDeadline(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		const callers, calls = 16, 10
		c := dial(t, ia, serve(t, ia, Config{}, callers*calls, silent), Config{}) // no call waits for a handler
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range calls {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
					_, err := c.Call(ctx, Call{}, nil)
					cancel()
					assert.ErrorIs(t, err, context.DeadlineExceeded)
				}
			})
		}
		all.Wait()
	})
}

func TestThePassedDeadlineOfAContextWhoseTimerIsLate(t *testing.T) {
	assert.NoError(t, passed(t.Context()))
	assert.ErrorIs(t, passed(late{t.Context()}), context.DeadlineExceeded)
}

// late is a context whose timer has not run yet.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now(), true }
