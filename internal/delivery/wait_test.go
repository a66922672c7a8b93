package delivery

import (
	"context"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
)

// expired is a context whose deadline has passed: DAT's time limit of 0.
func expired() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 0)
	cancel()
	return ctx
}

func TestDequeueTakesManyInOrder(t *testing.T) {
	d := newDispatcher(t, Config{})
	buf := make([]event.Event, 3)
	n, err := d.Dequeue(buf)
	require.NoError(t, err)
	assert.Zero(t, n, "empty")
	put(t, d.Main(), 1, 2, 3, 4)
	n, err = d.Dequeue(buf)
	require.NoError(t, err)
	assert.Equal(t, list(1, 2, 3), cookies(buf[:n]))
	putSilent(t, d.Main(), 5)
	n, err = d.Dequeue(buf)
	require.NoError(t, err)
	assert.Equal(t, list(4, 5), cookies(buf[:n]))
	n, err = d.Dequeue(nil)
	require.NoError(t, err)
	assert.Zero(t, n)
}

func TestOtherModesArePermanentWaiters(t *testing.T) {
	for _, mode := range []*Way{Channel, Batches, Callback} {
		d := newDispatcher(t, Config{Way: mode})
		_, err := d.Dequeue(make([]event.Event, 1))
		isError(t, err, hw.InvalidState, hw.StateEVDWaiter, mode)
		_, _, err = waitOne(d, background, 1)
		isError(t, err, hw.InvalidState, hw.StateEVDWaiter, mode)
	}
}

func TestWaitReturnsTheFirstAndCountsTheRest(t *testing.T) {
	d := newDispatcher(t, Config{})
	put(t, d.Main(), 1, 2, 3)
	for want := 1; want <= 3; want++ {
		ev, nmore, err := waitOne(d, background, 1)
		require.NoError(t, err)
		assert.EqualValues(t, want, ev.Cookie)
		assert.Equal(t, 3-want, nmore)
	}
}

func TestThresholdIsWithinTheQueue(t *testing.T) {
	d := newDispatcher(t, Config{QLen: 4})
	for _, threshold := range []int{-1, 0, 5} {
		_, _, err := waitOne(d, background, threshold)
		isError(t, err, hw.InvalidParameter, hw.Arg3, threshold)
	}
	put(t, d.Main(), 1, 2, 3, 4)
	ev, nmore, err := waitOne(d, expired(), 4)
	require.NoError(t, err)
	assert.EqualValues(t, 1, ev.Cookie)
	assert.Equal(t, 3, nmore)
}

// The context's end becomes DAT's code. Wait then dequeues nothing, and returns the
// number of queued events.
func TestWaitThatEndsEarlySaysWhyAndTakesNothing(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, tc := range map[string]struct {
		ctx   context.Context
		typ   hw.Type
		match []error
	}{
		"a deadline that has passed": {expired(), hw.TimeoutExpired, []error{hw.ErrTimeout, os.ErrDeadlineExceeded, context.DeadlineExceeded}},
		"a canceled context":         {canceled, hw.InterruptedCall, []error{hw.ErrInterrupted, context.Canceled}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDispatcher(t, Config{})
			put(t, d.Main(), 1, 2)
			ev, nmore, err := waitOne(d, tc.ctx, 3)
			isError(t, err, tc.typ, hw.NoSubtype)
			for _, target := range tc.match {
				assert.ErrorIs(t, err, target)
			}
			assert.Zero(t, ev)
			assert.Equal(t, 2, nmore)
			assert.Equal(t, list(1, 2), drain(t, d))
		})
	}
}

func TestWaitEndsAtItsDeadlineExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, Config{})
		put(t, d.Main(), 1)
		const limit = 71 * time.Minute
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		start := time.Now()
		_, nmore, err := waitOne(d, ctx, 2)
		isError(t, err, hw.TimeoutExpired, hw.NoSubtype)
		assert.Equal(t, 1, nmore)
		assert.Equal(t, limit, time.Since(start))
	})
}

func TestWaiterWakesAtItsThresholdAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, Config{})
		woken := false
		go func() {
			ev, nmore, err := waitOne(d, context.Background(), 3)
			assert.NoError(t, err)
			assert.EqualValues(t, 1, ev.Cookie)
			assert.Equal(t, 2, nmore)
			woken = true
		}()
		for c := range uint64(3) {
			synctest.Wait()
			assert.False(t, woken, "%d are too few", c)
			put(t, d.Main(), c+1)
		}
		synctest.Wait()
		assert.True(t, woken)
	})
}

// Otherwise a loop of UNSIGNALLED work and a waiter would starve each other.
func TestARefusedReservationWakesTheWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, Config{QLen: 2})
		n := 0
		go func() {
			for range d.Events(context.Background()) {
				n++
			}
		}()
		synctest.Wait()
		putSilent(t, d.Main(), 1, 2)
		synctest.Wait()
		assert.Zero(t, n)
		assert.False(t, d.Main().Reserve(1))
		synctest.Wait()
		assert.Equal(t, 2, n)
		putSilent(t, d.Main(), 3)
		synctest.Wait()
		assert.Equal(t, 2, n)
		d.Flush()
		synctest.Wait()
		assert.Equal(t, 3, n)
		d.Abort()
	})
}

func TestWaiterIsExclusive(t *testing.T) {
	d := newDispatcher(t, Config{})
	ctx, cancel := context.WithCancel(background)
	done := make(chan error)
	go func() {
		_, _, err := waitOne(d, ctx, 1)
		done <- err
	}()
	eventually(t, "the waiter sleeps", func() bool { return sleeping(d) })
	_, _, err := waitOne(d, background, 1)
	isError(t, err, hw.InvalidState, hw.StateEVDWaiter)
	_, err = d.Dequeue(make([]event.Event, 1))
	isError(t, err, hw.InvalidState, hw.StateEVDWaiter)
	isError(t, d.Close(), hw.InvalidState, hw.StateEVDWaiter)
	require.True(t, d.Main().Reserve(1), "a refused Close has no effect")
	d.Main().Release(1)
	cancel()
	isError(t, <-done, hw.InterruptedCall, hw.NoSubtype)
	assert.NoError(t, d.Close())
}

func TestAbortWakesTheWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, Config{})
		require.NoError(t, d.Feeds().Attach(feedOf(hw.Default)))
		var err error
		go func() { _, _, err = waitOne(d, context.Background(), 2) }()
		synctest.Wait()
		require.NoError(t, err)
		put(t, d.Main(), 1)
		d.Abort()
		synctest.Wait()
		isError(t, err, hw.Abort, hw.NoSubtype)
		assert.ErrorIs(t, err, hw.ErrAbort)
		assert.ErrorIs(t, err, net.ErrClosed)
		_, _, err = waitOne(d, context.Background(), 1)
		assert.ErrorIs(t, err, hw.ErrInvalidHandle)
		d.Abort()
		assert.NoError(t, d.Close())
	})
}

func TestWaiterThatLeavesAsAnEventComesLosesNothing(t *testing.T) {
	d := newDispatcher(t, Config{QLen: 1})
	d.main.consumer.spins = 0
	for i := range attempts() {
		ctx, cancel := context.WithCancel(background)
		var wg sync.WaitGroup
		wg.Go(func() { put(t, d.Main(), i) })
		wg.Go(cancel)
		ev, _, err := waitOne(d, ctx, 1)
		wg.Wait()
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, list(i), drain(t, d))
			continue
		}
		require.Equal(t, i, ev.Cookie)
		require.Empty(t, drain(t, d))
	}
}

// A silent event does not wake the waiter, but it counts when the deadline ends the
// wait.
func TestAWaitWhoseDeadlinePassesWithEnoughEventsSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDispatcher(t, Config{})
		ctx, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		type result struct {
			ev  event.Event
			err error
		}
		done := make(chan result, 1)
		go func() {
			ev, _, err := waitOne(d, ctx, 1)
			done <- result{ev, err}
		}()
		synctest.Wait()
		putSilent(t, d.Main(), 7)
		synctest.Wait()
		require.Empty(t, done, "the silent event did not end the wait")
		got := <-done
		require.NoError(t, got.err)
		assert.Equal(t, uint64(7), got.ev.Cookie)
	})
}

func TestAWaiterThatSleepsAllocatesNothing(t *testing.T) {
	d := newDispatcher(t, Config{})
	var sink [1]event.Event
	feed := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range feed {
			for !sleeping(d) {
				runtime.Gosched()
			}
			d.Main().Reserve(1)
			d.Main().Put(&sink[0])
			d.Main().Flush()
		}
	}()
	assert.Zero(t, testing.AllocsPerRun(50, func() {
		feed <- struct{}{}
		_, _, _ = waitOne(d, background, 1)
	}))
	close(feed)
	<-done
}

// The program may make the dispatcher waitable again before the waiter runs.
func TestSetUnwaitableEndsEachWaitThatIsUnderWay(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			d := newDispatcher(t, Config{})
			var err error
			var ended atomic.Int32
			go func() { _, _, err = waitOne(d, context.Background(), 1) }()
			synctest.Wait()
			for range 2 {
				go func() { // waits for its turn
					for range d.Events(context.Background()) {
						t.Error("an event")
					}
					ended.Add(1)
				}()
				synctest.Wait()
			}
			d.Consumer().SetUnwaitable()
			d.Consumer().ClearUnwaitable()
			synctest.Wait()
			isError(t, err, hw.InvalidState, hw.StateEVDUnwaitable)
			assert.EqualValues(t, 2, ended.Load())
			put(t, d.Main(), 1)
			ev, _, err := waitOne(d, expired(), 1)
			assert.NoError(t, err, "it is waitable")
			assert.EqualValues(t, 1, ev.Cookie)
		})
	}
}
