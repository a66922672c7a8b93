package rpc

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/event"
	dat "godat/runtime"
)

// One select has the channels of a listener and of a server, and learns of the end of each in the same way.
func TestTheLastEventOfRequestsIsClosedAndTheChannelStaysOpen(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		for name, closes := range map[string]func(*Server) error{
			"Close": (*Server).Close, "Shutdown": func(s *Server) error { return s.Shutdown(within(t)) },
		} {
			t.Run(name, func(t *testing.T) {
				s, err := Listen(t.Context(), ia, ":0", Config{})
				require.NoError(t, err)
				ln, err := ia.Listen(t.Context(), ":0", dat.ConnConfig{})
				require.NoError(t, err)
				requests := s.Requests()
				require.NoError(t, closes(s))
				require.NoError(t, ln.Close())
				left := 3
				for left > 0 {
					var ev event.Event
					select {
					case ev = <-requests:
						assert.Nil(t, RequestOf(ev))
						assert.Equal(t, s, ev.Source)
					case ev = <-ln.Requests():
					case ev = <-ln.Events():
					}
					require.Equal(t, event.Closed, ev.Number)
					left--
				}
				select {
				case ev, open := <-requests:
					t.Errorf("%v %v behind the last event", ev, open)
				default:
				}
			})
		}
		s, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		require.NoError(t, s.Close())
		assert.Equal(t, event.Closed, (<-s.Requests()).Number, "of a server that was closed before")
	})
}

// Of requests that wait for the program some are in the channel, some in a hand, and some in the queue.
func TestRequestsThatWaitForTheProgramAreCountedAndEnded(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		for stays := range 4 { // of four callers one after the other stays
			s, err := Listen(t.Context(), ia, ":0", Config{})
			require.NoError(t, err)
			requests := s.Requests()
			c := dial(t, ia, s, Config{})
			answered := make(chan error, 1)
			leave, left := make(chan struct{}), make(chan error, 3)
			for i := range 4 {
				ctx, cancel := context.WithCancel(within(t))
				go func() {
					defer cancel()
					_, err := c.Call(ctx, Call{Payload: []byte{byte(i)}}, nil)
					if i == stays {
						answered <- err
					} else {
						left <- err
					}
				}()
				if i != stays {
					go func() {
						<-leave
						cancel()
					}()
				}
				untakenBecome(t, s, i+1)
			}
			close(leave)
			for range 3 {
				require.ErrorIs(t, <-left, context.Canceled)
			}
			untakenBecome(t, s, 1)
			assert.Eventually(t, func() bool { return s.Snapshot().Left == 3 }, time.Minute, time.Millisecond)
			assert.Zero(t, s.Snapshot().Refused, "nobody was refused")
			r := RequestOf(<-requests)
			require.Equal(t, []byte{byte(stays)}, r.Payload())
			require.NoError(t, r.Reply(nil))
			require.NoError(t, <-answered)
			untakenBecome(t, s, 0)

			for range 3 { // whom the server's end leaves
				go func() {
					_, err := c.Call(within(t), Call{}, nil)
					left <- err
				}()
			}
			untakenBecome(t, s, 3)
			require.NoError(t, s.Close())
			for range 3 {
				require.ErrorIs(t, <-left, ErrEnded)
			}
			assert.Equal(t, event.Closed, (<-requests).Number)
			assert.Zero(t, s.Snapshot().Requests)
		}
	})
}

// A request whose time passes in the channel leaves its place to others that come. One that arrives late, as
// on a busy machine, has its time from then on, and may be given.
func TestARequestWhoseTimePassesInTheChannelLeavesItsPlaceToOthers(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		requests := s.Requests()
		c := dial(t, ia, s, Config{})
		for range 20 {
			ctx, cancel := context.WithTimeout(within(t), 2*time.Millisecond)
			_, err = c.Call(ctx, Call{}, nil)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			untakenBecome(t, s, 0)
			answered := called(within(t), c, 2)
			for n := 0; n < 2; {
				r := RequestOf(<-requests)
				n += len(r.Payload()) // one byte of each of the two, and none of the one before
				require.NoError(t, r.Reply(nil))
			}
			require.NoError(t, <-answered)
			require.NoError(t, <-answered)
		}
		require.NoError(t, s.Close())
	})
}

// A caller with memory is told at once that it is its own again, and feed then takes its request back: the
// caller is not told twice, and its connection and its slot serve the next call.
func TestARequestWithMemoryThatWaitsForTheProgramIsAnsweredOnce(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, s.Close()) })
		requests := s.Requests()
		c := dial(t, ia, s, Config{Calls: 2})
		for range 4 { // each slot more than once
			left := make(chan error, 2)
			ctx, cancel := context.WithCancel(within(t))
			for i := range 2 { // one in the channel, and one in a hand
				go func() {
					_, err := c.Call(ctx, Call{SinkBytes: make([]byte, 8)}, nil)
					left <- err
				}()
				untakenBecome(t, s, i+1)
			}
			cancel()
			for range 2 {
				err := <-left
				require.ErrorIs(t, err, context.Canceled)
			}
			holds(t, s, 0)
			answered := called(within(t), c, 1)
			select {
			case ev := <-requests:
				require.NoError(t, RequestOf(ev).Reply(nil))
				require.NoError(t, <-answered)
			case err := <-answered:
				require.NoError(t, err)
			}
		}
		s.mu.Lock()
		all := slices.Collect(maps.Keys(s.conns))
		s.mu.Unlock()
		require.Len(t, all, 1)
		assert.Zero(t, all[0].left.Load(), "requests of callers that have left")
	})
}
