package rpc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/event"
	dat "godat/runtime"
)

// overloaded is a server of 4 handlers that take 10 ms each, so of 400 calls a second, and its clients.
type overloaded struct {
	inTime, late, began atomic.Int64 // calls that were answered in time; handlers that began too late, or at all
	others              atomic.Int64 // errors that are neither a refusal nor the deadline
}

const (
	overloadWorkers = 4
	overloadTime    = 10 * time.Millisecond
	overloadLimit   = 100 * time.Millisecond
	overloadLasts   = 2 * time.Second
	capacity        = float64(overloadLasts/overloadTime) * overloadWorkers // calls
)

// run makes calls, by so many clients, for two seconds of the test's clock.
func (o *overloaded) run(t *testing.T, clients int, cfg Config, make func(ctx context.Context, i int, call func(ctx context.Context))) {
	synctest.Test(t, func(t *testing.T) {
		ia := open(t, "loop")
		s, err := Listen(t.Context(), ia, ":0", cfg)
		require.NoError(t, err)
		served := goServe(t, s, overloadWorkers, func(r *Request) ([]byte, error) {
			o.began.Add(1)
			if r.Context().Err() != nil {
				o.late.Add(1)
			}
			time.Sleep(overloadTime)
			return nil, nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), overloadLasts)
		defer cancel()
		var all sync.WaitGroup
		var connected []*Client
		for i := range clients {
			c := dial(t, ia, s, cfg)
			connected = append(connected, c)
			all.Go(func() {
				make(ctx, i, func(ctx context.Context) {
					ctx, cancel := context.WithTimeout(ctx, overloadLimit)
					defer cancel()
					switch _, err := c.Call(ctx, Call{}, nil); {
					case err == nil:
						o.inTime.Add(1)
					case !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, &Error{Code: CodeBusy}):
						o.others.Add(1)
					}
				})
			})
		}
		all.Wait()
		time.Sleep(time.Second) // until the last handlers have returned
		for _, c := range connected {
			require.NoError(t, c.Close())
			synctest.Wait()
		}
		time.Sleep(time.Second) // the server gives their memory back
		require.NoError(t, s.Close())
		require.NoError(t, <-served)
	})
}

func goServe(t *testing.T, s *Server, workers int, handler Handler) <-chan error {
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), workers, handler) }()
	return served
}

// 64 callers that ask again at once ask for 1.6 times what is possible.
func TestCallersThatAskForTooMuchAreAnsweredInTimeAsOftenAsIsPossible(t *testing.T) {
	var o overloaded
	o.run(t, 4, Config{}, func(ctx context.Context, _ int, call func(context.Context)) {
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for ctx.Err() == nil {
					call(ctx)
				}
			})
		}
		all.Wait()
	})
	assert.GreaterOrEqual(t, float64(o.inTime.Load()), 0.9*capacity)
	assert.Zero(t, o.late.Load(), "no handler begins a call whose time is over")
	assert.Zero(t, o.others.Load())
	assert.LessOrEqual(t, float64(o.began.Load()-o.inTime.Load()), 0.05*capacity, "what begins ends in time")
}

// Calls come at random, half as many as possible to four times as many.
func TestAnswersInTimeStayTheMostAtAnyLoad(t *testing.T) {
	for _, load := range []float64{0.5, 0.9, 1, 1.3, 1.6, 2, 3, 4} {
		t.Run(fmt.Sprint(load), func(t *testing.T) {
			var o overloaded
			o.run(t, 4, Config{Calls: 64}, func(ctx context.Context, i int, call func(context.Context)) {
				rnd := rand.New(rand.NewPCG(uint64(i), 7))
				var all sync.WaitGroup
				for ctx.Err() == nil {
					time.Sleep(time.Duration(rnd.ExpFloat64() * 4 / (load * capacity) * float64(overloadLasts)))
					all.Go(func() { call(ctx) })
				}
				all.Wait()
			})
			assert.GreaterOrEqual(t, float64(o.inTime.Load()), 0.9*min(load, 1)*capacity)
			assert.Zero(t, o.late.Load())
			assert.Zero(t, o.others.Load())
		})
	}
}

// A client that has all its calls waiting takes no more than its turns from one that asks now and then.
func TestAClientThatAsksForMuchWaitsBehindItself(t *testing.T) {
	var o overloaded
	var asked, modest atomic.Int64
	o.run(t, 4, Config{Calls: 64}, func(ctx context.Context, i int, call func(context.Context)) {
		var all sync.WaitGroup
		if i > 0 {
			for range 32 {
				all.Go(func() {
					for ctx.Err() == nil {
						call(ctx)
					}
				})
			}
			all.Wait()
			return
		}
		for ctx.Err() == nil { // a tenth of what is its part
			time.Sleep(100 * time.Millisecond)
			began := time.Now()
			call(ctx)
			if asked.Add(1); time.Since(began) < overloadLimit/2 {
				modest.Add(1)
			}
		}
	})
	assert.Greater(t, asked.Load(), int64(10))
	assert.GreaterOrEqual(t, modest.Load(), asked.Load()-1, "the last one is cut off by the end")
}

// waiting makes a server whose only handler is busy, with so many calls of a client behind it.
func waiting(t *testing.T, ia *dat.IA, cfg Config, call func(c *Client)) (s *Server, c *Client, begun chan *Request, mayEnd chan bool) {
	t.Helper()
	s, err := Listen(t.Context(), ia, ":0", cfg)
	require.NoError(t, err)
	begun, mayEnd = make(chan *Request, 64), make(chan bool)
	served := goServe(t, s, 1, func(r *Request) ([]byte, error) {
		begun <- r
		<-mayEnd
		return nil, nil
	})
	t.Cleanup(func() {
		close(mayEnd)
		assert.NoError(t, s.Close())
		assert.NoError(t, <-served)
	})
	first := dial(t, ia, s, Config{})
	called(t.Context(), first, 1)
	<-begun
	c = dial(t, ia, s, cfg)
	call(c)
	return s, c, begun, mayEnd
}

func untakenBecome(t *testing.T, s *Server, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return s.Snapshot().Untaken == n }, time.Minute, time.Millisecond, "%d wait", n)
}

func TestRequestsThatWaitLeaveWithTheirConnection(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, c, begun, _ := waiting(t, ia, Config{Calls: 8}, func(c *Client) { called(t.Context(), c, 8) })
		untakenBecome(t, s, 8)
		require.NoError(t, c.Close())
		untakenBecome(t, s, 0)
		assert.Equal(t, 1, s.Snapshot().Requests, "that of the handler")
		assert.Empty(t, begun)
	})
}

func TestARequestWhoseCallerLeavesBeforeItIsBegunHasNotRun(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		s, c, begun, mayEnd := waiting(t, ia, Config{}, func(c *Client) {
			go func() {
				_, err := c.Call(ctx, Call{SinkBytes: make([]byte, 8)}, nil)
				failed <- err
			}()
		})
		untakenBecome(t, s, 1)
		cancel()
		err := <-failed
		require.ErrorIs(t, err, context.Canceled)
		var none *CallError
		require.ErrorAs(t, err, &none)
		assert.False(t, none.MayHaveRun)
		untakenBecome(t, s, 0)
		next := called(t.Context(), c, 1)
		mayEnd <- true
		<-begun
		mayEnd <- true
		require.NoError(t, <-next)
		assert.Empty(t, begun, "no handler got it")
	})
}

func TestARequestFromTheChannelHasACallerThatWaits(t *testing.T) {
	onEach(t, func(t *testing.T, ia *dat.IA) {
		s, err := Listen(t.Context(), ia, ":0", Config{})
		require.NoError(t, err)
		requests := s.Requests()
		gone, stays := dial(t, ia, s, Config{}), dial(t, ia, s, Config{})
		left := called(t.Context(), gone, 3)
		untakenBecome(t, s, 3)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err = stays.Call(ctx, Call{}, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, gone.Close())
		for range 3 {
			require.ErrorIs(t, <-left, ErrEnded)
		}
		untakenBecome(t, s, 0)
		answered := called(t.Context(), stays, 1)
		require.NoError(t, RequestOf(<-requests).Reply(nil))
		require.NoError(t, <-answered)
		require.NoError(t, s.Close())
		assert.Equal(t, event.Event{Number: event.Closed, Source: s}, <-requests)
	})
}

// A method that once took long is tried again, though others keep the server busy.
func TestARefusedMethodIsTriedAgain(t *testing.T) {
	var q queue
	q.load.observe(1, time.Hour, true)
	q.load.observe(2, time.Millisecond, true)
	q.load.all = estimate{mean: time.Millisecond}
	q.running = 1
	r := &Request{from: &served{}}
	r.header.code, r.header.timeout = 1, 1000
	tries := 0
	for q.tooLate(r, true) != "" {
		tries++
		require.Less(t, tries, 1000)
	}
	assert.Positive(t, tries)
	r.header.code = 2
	assert.Empty(t, q.tooLate(r, true))
	r.header.code = 3
	assert.Empty(t, q.tooLate(r, true), "of a method that is not known nothing is supposed")
}

// The queue knows how long it makes wait, and says no at once.
func TestACallThatWouldBeAnsweredTooLateIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ia := open(t, "loop")
		s, err := Listen(t.Context(), ia, ":0", Config{Calls: 64})
		require.NoError(t, err)
		served := goServe(t, s, 1, func(*Request) ([]byte, error) {
			time.Sleep(overloadTime)
			return nil, nil
		})
		c := dial(t, ia, s, Config{Calls: 64})
		for range 10 {
			require.NoError(t, <-called(t.Context(), c, 1))
		}
		others := called(t.Context(), c, 20) // 200 ms
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), overloadLimit)
		defer cancel()
		began := time.Now()
		_, err = c.Call(ctx, Call{}, nil)
		require.ErrorIs(t, err, &Error{Code: CodeBusy})
		require.ErrorContains(t, err, "would wait")
		var failed *CallError
		require.ErrorAs(t, err, &failed)
		assert.False(t, failed.MayHaveRun)
		assert.Zero(t, time.Since(began))
		for range 20 {
			require.NoError(t, <-others, "a call without a deadline waits")
		}
		_, err = c.Call(ctx, Call{}, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, c.Close())
		synctest.Wait()
		time.Sleep(time.Second)
		require.NoError(t, s.Close())
		require.NoError(t, <-served)
	})
}

func TestARequestWhoseTimeIsOverIsNotBegun(t *testing.T) {
	var q queue
	r := &Request{from: &served{}, arrived: time.Now().Add(-time.Second)}
	r.header.timeout = 2000
	assert.Empty(t, q.expired(r, time.Now(), false))
	r.header.timeout = 1000
	assert.NotEmpty(t, q.expired(r, time.Now(), false))
	r.header.timeout = 0
	assert.Empty(t, q.expired(r, time.Now(), true))
}
