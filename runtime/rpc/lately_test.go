package rpc

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	dat "godat/runtime"
)

// hour is a server with one worker and a client of it on loop, with time that costs nothing.
func hour(t *testing.T, cfg Config, handler Handler, run func(t *testing.T, s *Server, c *Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ia, err := dat.Open(t.Context(), "loop")
		require.NoError(t, err)
		s, err := Listen(t.Context(), ia, ":0", Config{Calls: 16})
		require.NoError(t, err)
		served := make(chan error, 1)
		go func() { served <- s.Serve(context.Background(), 1, handler) }()
		c, err := Dial(t.Context(), ia, s.Addr(), cfg)
		require.NoError(t, err)
		run(t, s, c)
		require.NoError(t, c.Close())
		require.NoError(t, s.Close())
		require.NoError(t, <-served)
		require.NoError(t, ia.Close())
	})
}

func slowly(*Request) ([]byte, error) { time.Sleep(300 * time.Millisecond); return nil, nil }

func TestCallsThatMissTheirDeadlineAreATroubleOfBothEndsForAMinute(t *testing.T) {
	hour(t, Config{}, slowly, func(t *testing.T, s *Server, c *Client) {
		for range 4 {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			_, err := c.Call(ctx, Call{Method: 1}, nil)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			time.Sleep(time.Second)
		}
		assert.EqualValues(t, 4, c.Snapshot().Late)
		assert.EqualValues(t, 4, s.Snapshot().Late)
		assert.Equal(t, "the server answers too late, after about 300 ms: 4 calls missed the deadline of 100 ms within the last minute; look at its page why method 1 takes so long, or give the calls more time", c.Snapshot().Trouble(time.Second))
		assert.Equal(t, "the handlers are slower than the callers' deadline: method 1 takes about 300 ms; 4 calls were answered behind the deadline of 100 ms within the last minute, after about 300 ms; look what it waits for, or give the calls more time", s.Snapshot().Trouble(time.Second))
		time.Sleep(time.Minute + recentPart)
		assert.Empty(t, c.Snapshot().Trouble(time.Second))
		assert.Empty(t, s.Snapshot().Trouble(time.Second))
		assert.EqualValues(t, 4, c.Snapshot().Late, "the counts stay")
	})
}

func TestAnAnswerWhoseCallerHasLeftOrIsGoneIsNotLate(t *testing.T) {
	hour(t, Config{}, slowly, func(t *testing.T, s *Server, c *Client) {
		for range 4 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
			_, err := c.Call(ctx, Call{Method: 1}, nil)
			require.ErrorIs(t, err, context.Canceled)
			time.Sleep(time.Second)
		}
		assert.Zero(t, s.Snapshot().Late, "callers have left")
		assert.Empty(t, s.Snapshot().Trouble(time.Second))
		done := make(chan error)
		go func() {
			_, err := c.Call(t.Context(), Call{Method: 1}, nil)
			done <- err
		}()
		time.Sleep(100 * time.Millisecond)
		require.NoError(t, c.Close())
		require.Error(t, <-done)
		time.Sleep(time.Second)
		assert.Equal(t, CallEnds{Lost: 1}, s.Snapshot().CallEnds)
		assert.Equal(t, "1 call lost the connection within the last minute", s.Snapshot().Trouble(time.Second))
	})
}

func TestCallersThatWaitForAPlaceAreToldWithTheirAge(t *testing.T) {
	hour(t, Config{Calls: 1}, slowly, func(t *testing.T, s *Server, c *Client) {
		done := make(chan error)
		for range 9 {
			go func() { _, err := c.Call(t.Context(), Call{Method: 1}, nil); done <- err }()
		}
		time.Sleep(1250 * time.Millisecond) // four have been answered
		now := c.Snapshot()
		assert.Equal(t, 4, now.Callers)
		assert.Equal(t, 1250*time.Millisecond, now.CallersAge)
		assert.Contains(t, now.Trouble(time.Second), "Config.Calls allows 1 call at a time, and a call takes about 312 ms, so 3.2 a second are made: 4 callers wait for a place, the first for 1.25 s")
		for range 9 {
			require.NoError(t, <-done)
		}
		now = c.Snapshot()
		assert.Zero(t, now.Callers)
		assert.Equal(t, 2400*time.Millisecond, now.Minute.longestWait)
		assert.Equal(t, "5 calls waited a second or longer for a place or a connection within the last minute, one of them 2.4 s; this client's Config.Calls allows 1 call at a time, and a call takes about 300 ms, so 3.3 a second are made", now.Trouble(time.Second))
	})
}

func TestRequestsThatWaitAreToldByTheirAgeThoughTheFirstChanges(t *testing.T) {
	hour(t, Config{Calls: 16}, slowly, func(t *testing.T, s *Server, c *Client) {
		done := make(chan error)
		for range 9 {
			go func() { _, err := c.Call(t.Context(), Call{Method: 1}, nil); done <- err }()
		}
		for at := time.Duration(0); at < 2250*time.Millisecond; at += 250 * time.Millisecond {
			synctest.Wait()
			assert.Equal(t, at, s.Snapshot().UntakenAge)
			time.Sleep(250 * time.Millisecond)
		}
		assert.Contains(t, s.Snapshot().Trouble(time.Second), "1 request waits for a handler, for 2.25 s")
		for range 9 {
			require.NoError(t, <-done)
		}
	})
}

func TestAnswersThatAreErrorsAreToldByCodeWithTheLast(t *testing.T) {
	codes := []uint16{CodeFailed, 0, CodeFailed, 0, CodeUnknown, 0}
	hour(t, Config{}, func(r *Request) ([]byte, error) {
		if code := codes[r.Method()]; code != 0 {
			return nil, &Error{code, "the disk is full"}
		}
		return nil, nil
	}, func(t *testing.T, s *Server, c *Client) {
		for method := range codes {
			_, _ = c.Call(t.Context(), Call{Method: uint16(method)}, nil)
			time.Sleep(time.Second)
		}
		want := " fails: 3 of 6 answers of the last minute are errors (2 CodeFailed, 1 CodeUnknown); the last time, 2 s ago, it said"
		assert.Equal(t, "this server's program"+want+`: "the disk is full"`, s.Snapshot().Trouble(time.Second))
		assert.Equal(t, "the server's program"+want+` of its own host: "the disk is full"`, c.Snapshot().Trouble(time.Second), "whose disk that is")
		assert.Equal(t, "2 CodeFailed, 1 CodeUnknown", s.Snapshot().Minute.String())
	})
}

func TestAProgramsOwnCodesAreATroubleWhereTheyAreHalfOfTheAnswers(t *testing.T) {
	for every, told := range map[int]bool{2: true, 3: false} {
		n := 0
		hour(t, Config{}, func(*Request) ([]byte, error) {
			if n++; n%every == 0 {
				return nil, &Error{CodeUser, "no such key"}
			}
			return nil, nil
		}, func(t *testing.T, s *Server, c *Client) {
			for range 60 {
				_, _ = c.Call(t.Context(), Call{}, nil)
			}
			assert.Equal(t, told, s.Snapshot().Trouble(time.Second) != "")
			assert.Equal(t, told, c.Snapshot().Trouble(time.Second) != "")
		})
	}
}

func TestAMinuteHasABoundOnWhatItTellsApart(t *testing.T) {
	var l lately
	for code := range 1000 {
		l.count(uint32(code+1), "x")
	}
	m := l.snapshot(1000)
	assert.LessOrEqual(t, len(m.Failures), mostKinds+1)
	assert.Equal(t, FailureCount{"others", 1000 - mostKinds, true}, m.Failures[0])
}
