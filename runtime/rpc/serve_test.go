package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	dat "godat/runtime"
)

func TestWhatAHandlerReturnsIsTheAnswer(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() {
			served <- s.Serve(ctx, 2, func(r *Request) ([]byte, error) { return r.Payload()[1:], nil })
		}()
		c := dial(t, ia, s, Config{})
		got, err := c.Call(within(t), Call{Payload: []byte("hello")}, nil)
		require.NoError(t, err)
		assert.Equal(t, "ello", string(got))
		stop()
		require.NoError(t, <-served)
		_, err = c.Call(within(t), Call{Payload: []byte("x")}, nil)
		require.ErrorIs(t, err, ErrEnded)
	})
}

func TestAHandlersErrorIsTheCallers(t *testing.T) {
	long := strings.Repeat("long", 1000)
	var none *Error
	cases := []struct {
		answer []byte
		err    error
		want   Error
	}{
		{nil, &Error{300, "as it is"}, Error{300, "as it is"}},
		{[]byte("dropped"), fmt.Errorf("wrapped: %w", &Error{300, "within"}), Error{300, "within"}},
		{nil, errors.New("the text"), Error{CodeFailed, "the text"}},
		{nil, errors.New(long), Error{CodeFailed, long[:mostText]}},
		{nil, none, Error{CodeFailed, none.Error()}},
		{nil, &Error{Text: "no code"}, Error{CodeFailed, "no code"}},
		{nil, &CallError{Err: &Error{CodeDraining, "another server's"}}, Error{CodeFailed, "another server's"}},
		{nil, &CallError{Err: &Error{CodeBusy, "another server's"}}, Error{CodeFailed, "another server's"}},
		{make([]byte, defaultMessage+1), nil, Error{CodeTooLong, "the answer is too long"}},
	}
	ia := open(t, "loop")
	s, err := Listen(t.Context(), ia, ":0", Config{})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() {
		served <- s.Serve(t.Context(), 1, func(r *Request) ([]byte, error) { return cases[r.Method()].answer, cases[r.Method()].err })
	}()
	c := dial(t, ia, s, Config{})
	for i, test := range cases {
		got, err := c.Call(within(t), Call{Method: uint16(i)}, nil)
		var failed *Error
		require.ErrorAs(t, err, &failed, i)
		assert.Equal(t, test.want, *failed, i)
		require.NotErrorAs(t, err, new(*CallError), "the handler has run")
		assert.Empty(t, got)
	}
	require.NoError(t, s.Close())
	require.NoError(t, <-served)
}

func TestAnAnswerThatCanNotBeSentIsLogged(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		var log bytes.Buffer
		s, err := Listen(t.Context(), ia, ":0", Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(t, err)
		begun, served := make(chan string, 1), make(chan error, 1)
		go func() {
			served <- s.Serve(t.Context(), 1, func(r *Request) ([]byte, error) {
				begun <- r.String()
				<-r.Context().Done()
				return nil, nil
			})
		}()
		c, err := Dial(within(t), ia, s.Addr(), Config{})
		require.NoError(t, err)
		called := make(chan error, 1)
		go func() {
			_, err := c.Call(within(t), Call{Method: 7}, nil)
			called <- err
		}()
		name := <-begun
		require.NoError(t, c.Close())
		require.ErrorIs(t, <-called, ErrEnded)
		require.NoError(t, s.Close())
		require.NoError(t, <-served)
		assert.Contains(t, log.String(), "an answer was not sent")
		assert.Contains(t, log.String(), name)
		assert.Contains(t, log.String(), ErrEnded.Error())
	})
}

// The request under way is answered if its handler takes less than Grace.
func TestServeEndsWithItsContextAndWhatIsUnderWay(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		for name, grace := range map[string]time.Duration{"answered": time.Minute, "cut off": 1} {
			t.Run(name, func(t *testing.T) {
				s, err := Listen(t.Context(), ia, ":0", Config{Grace: grace})
				require.NoError(t, err)
				ctx, stop := context.WithCancel(t.Context())
				served, called, mayEnd := make(chan error, 1), make(chan error, 1), make(chan bool)
				begun := make(chan *Request)
				go func() {
					served <- s.Serve(ctx, 1, func(r *Request) ([]byte, error) {
						begun <- r
						<-mayEnd
						return nil, nil
					})
				}()
				c := dial(t, ia, s, Config{})
				go func() {
					_, err := c.Call(within(t), Call{}, nil)
					called <- err
				}()
				r := <-begun
				stop()
				if name == "cut off" {
					<-r.Context().Done()
					require.ErrorIs(t, <-called, ErrEnded)
					close(mayEnd)
					require.ErrorIs(t, <-served, context.DeadlineExceeded)
					return
				}
				require.Eventually(t, s.drains, time.Minute, time.Millisecond)
				close(mayEnd)
				require.NoError(t, <-called)
				require.NoError(t, <-served)
			})
		}
	})
}

func TestServeEndsWithoutAnErrorWhenTheServerIsClosed(t *testing.T) {
	ia := open(t, "loop")
	s, err := Listen(t.Context(), ia, ":0", Config{})
	require.NoError(t, err)
	require.ErrorIs(t, s.Serve(nil, 1, nil), hw.ErrInvalidParameter) //nolint:staticcheck // a nil context
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), 0, func(*Request) ([]byte, error) { return nil, nil }) }()
	require.NoError(t, s.Close())
	require.NoError(t, <-served)
}

func TestServeHandlesAsManyRequestsAtATimeAsItHasWorkers(t *testing.T) {
	const workers = 4
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		begun, mayEnd, served := make(chan bool, 3*workers), make(chan bool), make(chan error, 1)
		go func() {
			served <- s.Serve(t.Context(), workers, func(r *Request) ([]byte, error) {
				begun <- true
				<-mayEnd
				return r.Payload(), nil
			})
		}()
		c := dial(t, ia, s, Config{})
		called := make(chan error, 3*workers)
		for range 3 * workers {
			go func() {
				_, err := c.Call(within(t), Call{}, nil)
				called <- err
			}()
		}
		for range workers {
			<-begun
		}
		require.Eventually(t, func() bool { return s.Snapshot().Untaken == 2*workers }, time.Minute, time.Millisecond)
		assert.Empty(t, begun, "the others wait")
		close(mayEnd)
		for range 3 * workers {
			require.NoError(t, <-called)
		}
		require.NoError(t, s.Close())
		require.NoError(t, <-served)
	})
}

func TestListenAndServeServesAnAddressUntilItsContextEnds(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		free, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		at := free.Addr()
		handler := func(r *Request) ([]byte, error) { return r.Payload(), nil }
		require.Error(t, ListenAndServe(t.Context(), ia, at, Config{}, 1, handler), "there is a server")
		require.NoError(t, free.Close())
		ctx, stop := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- ListenAndServe(ctx, ia, at, Config{}, 1, handler) }()
		c, err := Dial(within(t), ia, at, Config{Await: true})
		require.NoError(t, err)
		got, err := c.Call(within(t), Call{Payload: []byte("hello")}, nil)
		require.NoError(t, err)
		assert.Equal(t, "hello", string(got))
		stop()
		require.NoError(t, <-served)
		require.NoError(t, c.Close())
	})
}

// drains reports whether a shutdown has begun.
func (s *Server) drains() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}
