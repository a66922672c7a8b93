package rpc

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/hw"
	dat "godat/runtime"
)

// askedFor makes a call with memory, and returns its request.
func askedFor(t *testing.T, ia *dat.IA, cfg Config, ctx context.Context) (s *Server, r *Request, answered <-chan error) { //nolint:revive // the test is first
	t.Helper()
	s, err := Listen(t.Context(), ia, ":0", cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	c := dial(t, ia, s, Config{Patience: time.Hour})
	failed := make(chan error, 1)
	go func() {
		_, err := c.Call(ctx, Call{SinkBytes: make([]byte, 8)}, nil)
		failed <- err
	}()
	return s, s.nextRequest(), failed
}

func TestATransferThatWaitsForItsTurnIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ia := open(t, "loop")
		_, r, answered := askedFor(t, ia, Config{Stall: time.Second}, t.Context())
		line := r.from.turns.line
		require.NoError(t, line.Acquire(t.Context(), atOnce))
		written := make(chan error, 1)
		go func() { written <- r.WriteBytes([]byte("whole"), 0) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, written)
		line.Release(atOnce)
		require.NoError(t, <-written)
		require.NoError(t, r.Reply(nil))
		require.NoError(t, <-answered)
	})
}

func TestATransferThatWaitsForItsTurnEndsWithItsCall(t *testing.T) {
	for name, end := range map[string]func(s *Server, cancel func()){
		"its cancel":     func(_ *Server, cancel func()) { cancel() },
		"its connection": func(s *Server, _ func()) { _ = s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, ia *dat.IA) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				s, r, answered := askedFor(t, ia, Config{}, ctx)
				require.NoError(t, r.from.turns.line.Acquire(t.Context(), atOnce))
				written := make(chan error, 1)
				go func() {
					m, err := s.PZ().Alloc(8, hw.AllPrivileges)
					if err == nil {
						err = r.Write(m.Segment(0, 8), 0)
						assert.NoError(t, m.Free())
					}
					written <- err
				}()
				require.Eventually(t, func() bool {
					r.mu.Lock()
					defer r.mu.Unlock()
					return r.ctx != nil
				}, time.Minute, time.Millisecond)
				if name == "its connection" {
					require.NoError(t, r.Conn().Endpoint.Disconnect(ep.Abrupt))
					require.ErrorIs(t, <-written, ErrEnded)
				} else {
					end(s, cancel)
					require.ErrorIs(t, <-written, context.Canceled)
				}
				require.Error(t, <-answered, "long before Patience")
			})
		})
	}
}

// A client that says CANCEL again and again gives a transfer no more time.
func TestTheFirstCancelBoundsATransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ia := open(t, "loop")
		_, r, _ := askedFor(t, ia, Config{Stall: time.Minute, Patience: time.Second}, t.Context())
		require.NoError(t, r.watch())
		for range 10 {
			time.Sleep(200 * time.Millisecond)
			r.cancel()
		}
		synctest.Wait()
		require.ErrorIs(t, r.unwatch(0), context.Canceled)
		require.ErrorIs(t, r.Reply(nil), ErrEnded)

		_, r, _ = askedFor(t, ia, Config{Stall: time.Second, Patience: time.Minute}, t.Context())
		require.NoError(t, r.watch())
		time.Sleep(900 * time.Millisecond)
		r.cancel()
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		assert.True(t, r.broke, "at Stall, which a CANCEL does not put off")
		require.Error(t, r.unwatch(0))
	})
}

// A piece waits for those before it, each of which nearly stalls.
func TestAPieceBehindOthersThatMoveDoesNotStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ia := open(t, "loop")
		_, r, answered := askedFor(t, ia, Config{Stall: time.Minute}, t.Context())
		require.NoError(t, r.watch())
		for range 5 {
			time.Sleep(50 * time.Second)
			r.from.turns.took(leastPiece, 50*time.Second)
		}
		synctest.Wait()
		require.NoError(t, r.unwatch(0))
		require.NoError(t, r.watch())
		time.Sleep(61 * time.Second)
		synctest.Wait()
		require.ErrorIs(t, r.unwatch(0), hw.ErrTimeout)
		require.ErrorIs(t, r.Reply(nil), ErrEnded)
		require.ErrorIs(t, <-answered, ErrEnded)
	})
}

// The pieces of a link that takes long for each are small, so that each has a good part of Stall.
func TestPiecesFollowTheLink(t *testing.T) {
	var turns turns
	turns.init()
	for range 20 {
		size, weight := turns.piece()
		require.EqualValues(t, 1, weight)
		turns.took(size, time.Millisecond)
	}
	size, _ := turns.piece()
	assert.Equal(t, mostPiece, size)
	for range 20 {
		size, _ := turns.piece()
		turns.took(size, 10*time.Second)
	}
	size, _ = turns.piece()
	assert.Equal(t, leastPiece, size)
	turns.took(100, time.Millisecond)
	size, _ = turns.piece()
	assert.Equal(t, leastPiece, size, "an end of a transfer tells nothing")

	turns.least.Store(int64(2 * time.Second))
	turns.size.Store(mostPiece)
	turns.took(mostPiece, 2500*time.Millisecond)
	size, _ = turns.piece()
	assert.Equal(t, mostPiece, size, "a long way is no slow one")

	turns.init()
	turns.size.Store(mostPiece)
	turns.call.Store(time.Now().UnixNano())
	size, weight := turns.piece()
	assert.Equal(t, besideCalls, size)
	assert.EqualValues(t, atOnce, weight, "one at a time beside small calls")
}
