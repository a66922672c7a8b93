package rpc

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	dat "godat/runtime"
)

func TestAShutdownLosesNoAnswer(t *testing.T) {
	const clients, callers = 6, 5
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s := serve(t, ia, Config{Calls: 8}, 8, echo)
		var all sync.WaitGroup
		var warm sync.WaitGroup
		warm.Add(clients * callers)
		for range clients {
			c := dial(t, ia, s, Config{Calls: 8})
			for range callers {
				all.Go(func() {
					for n := 0; ; n++ {
						_, err := c.Call(within(t), Call{Payload: []byte("x")}, nil)
						if n == 0 {
							warm.Done()
						}
						if err == nil {
							continue
						}
						var failed *CallError
						if assert.ErrorAs(t, err, &failed) {
							assert.False(t, failed.MayHaveRun && !errors.Is(err, ErrEnded), err)
						}
						return
					}
				})
			}
		}
		warm.Wait()
		require.NoError(t, s.Shutdown(within(t)))
		all.Wait()
	})
}

func TestAShutdownWaitsForRequestsAndNoLongerThanItsContext(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		c := dial(t, ia, s, Config{})
		answered := make(chan error, 1)
		call := func() {
			_, err := c.Call(within(t), Call{}, nil)
			answered <- err
		}
		go call()
		r := s.nextRequest()
		go handle(s, 1, echo) // the calls behind it
		down := make(chan error, 1)
		go func() { down <- s.Shutdown(within(t)) }()
		for {
			_, err := c.Call(within(t), Call{}, nil) // until the shutdown has begun
			var refused *Error
			if errors.As(err, &refused) {
				assert.Equal(t, CodeDraining, refused.Code)
				break
			}
		}
		require.NoError(t, r.Reply(nil))
		require.NoError(t, <-answered)
		require.NoError(t, <-down)

		s, err = Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		c = dial(t, ia, s, Config{})
		go call()
		r = s.nextRequest()
		require.ErrorIs(t, s.Shutdown(nil), hw.ErrInvalidParameter) //nolint:staticcheck // that is the test
		over, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, s.Shutdown(over), context.Canceled)
		require.ErrorIs(t, <-answered, ErrEnded)
		require.ErrorIs(t, r.Reply(nil), ErrEnded)
		require.ErrorIs(t, r.Reply(nil), hw.ErrInvalidState)
	})
}

// Two shutdowns at a time have one end to say, and each learns that it has been said.
func TestShutdownsAtATimeSayTheEndOnce(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s := serve(t, ia, Config{}, 1, echo)
		c := stingy(t, ia, s, 2) // which has a receive for two answers, and takes them now
		h, _ := heard(t, c)
		require.EqualValues(t, kindAnswer, h.kind)
		h, _ = heard(t, c)
		require.EqualValues(t, kindAnswer, h.kind)
		holds(t, s, 0)
		<-s.drain()
		s.sayEnd(t.Context())
		said := s.drain()
		s.sayEnd(t.Context()) // of the other, which has also seen that all requests are answered
		require.NoError(t, c.SendBytes(encoded(header{kind: kindCredit, taken: 2})))
		select {
		case <-said:
		case <-within(t).Done():
			t.Fatal("the first waits for ever")
		}
		h, _ = heard(t, c)
		require.EqualValues(t, kindEnd, h.kind)
	})
}
