package evd

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
	"godat/internal/yield"
)

func TestCloseOfACNOInUseIsRefused(t *testing.T) {
	c := newCNO(t, CNOConfig{})
	d := newDispatcher(t, Config{CNO: c})
	isError(t, c.Close(), hw.InvalidState, hw.StateCNOInUse)
	put(t, d.inner.Main(), 1)
	assert.Same(t, d, triggered(t, c), "a refused Close had an effect")
	require.NoError(t, d.Close(), "a CNO does not keep a dispatcher")

	ctx, cancel := context.WithCancel(background)
	done := make(chan error)
	go func() {
		_, err := c.Wait(ctx)
		done <- err
	}()
	eventually(t, "a waiter", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.waiters > 0
	})
	isError(t, c.Close(), hw.InvalidState, hw.StateCNOInUse)
	cancel()
	isError(t, <-done, hw.InterruptedCall, hw.NoSubtype)
	require.NoError(t, c.Close())
	require.NoError(t, c.Close(), "a second Close has nothing to do")
	for _, err := range []error{
		second(c.Wait(background)), second(c.Trigger()), c.ModifyAgent(nil), second(c.Query()), second(c.FD()),
		d.ModifyCNO(c), d.Enable(), d.Disable(), d.SetUnwaitable(), d.ClearUnwaitable(),
	} {
		assert.ErrorIs(t, err, hw.ErrInvalidHandle)
	}
	var none *CNO
	for _, err := range []error{
		second(none.Wait(background)), second(none.Trigger()), none.ModifyAgent(nil), second(none.Query()), second(none.FD()), none.Close(),
	} {
		isError(t, err, hw.InvalidHandle, hw.HandleCNO)
	}
}

func second[T any](_ T, err error) error { return err }

func TestTheLastDispatchersEndWakesAllWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCNO(t, CNOConfig{})
		a, b := withCNO(t, c), withCNO(t, c)
		type result struct {
			d   *Dispatcher
			err error
		}
		results := make(chan result, 2)
		for range 2 {
			go func() {
				d, err := c.Wait(context.Background())
				results <- result{d, err}
			}()
		}
		synctest.Wait()
		require.NoError(t, a.Close())
		synctest.Wait()
		assert.Empty(t, results, "one is left")
		require.NoError(t, b.Close())
		synctest.Wait()
		require.Len(t, results, 2)
		assert.Equal(t, result{}, <-results)
		assert.Equal(t, result{}, <-results)

		// A CNO without dispatchers may be given to others.
		d := withCNO(t, c)
		put(t, d.inner.Main(), 1)
		assert.Same(t, d, triggered(t, c))
	})
}

func TestAFreedDispatcherIsNoHintAndLeavesTheTriggerToOthers(t *testing.T) {
	c := newCNO(t, CNOConfig{})
	a, b := withCNO(t, c), withCNO(t, c)
	put(t, a.inner.Main(), 1)
	put(t, b.inner.Main(), 2) // while a's trigger is set
	require.NoError(t, a.Close())
	d, err := c.Trigger()
	require.NoError(t, err, "b's event would be missed")
	assert.Nil(t, d, "a is gone")
	put(t, b.inner.Main(), 3)
	require.NoError(t, b.Close())
	assert.Nil(t, triggered(t, c), "nothing is left to look at")
}

func TestAbortEndsTheWaitersOfACNO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCNO(t, CNOConfig{})
		withCNO(t, c)
		var err error
		go func() { _, err = c.Wait(context.Background()) }()
		synctest.Wait()
		c.abort()
		synctest.Wait()
		isError(t, err, hw.InvalidState, hw.StateCNODead)
		c.abort()
		require.NoError(t, c.Close())
	})
}

func TestADispatcherThatLeavesHidesNoTrigger(t *testing.T) {
	c := newCNO(t, CNOConfig{})
	a, b := withCNO(t, c), newDispatcher(t, Config{})
	stop := make(chan struct{})
	var comes sync.WaitGroup
	comes.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				assert.NoError(t, b.ModifyCNO(c))
				assert.NoError(t, b.ModifyCNO(nil))
			}
		}
	})
	one := make([]event.Event, 1)
	for i := range uint64(10_000) {
		put(t, a.inner.Main(), i)
		_, err := c.Trigger()
		if !assert.NoError(t, err, i) {
			break
		}
		_, err = a.Dequeue(one)
		require.NoError(t, err)
	}
	close(stop)
	comes.Wait()
}

func TestCloseOfACNORefusesOrIsRefused(t *testing.T) {
	const rounds = 50_000
	d := newDispatcher(t, Config{})
	for name, use := range map[string]func(c *CNO) error{
		"a dispatcher": func(c *CNO) error { return c.join("", d) },
		"a waiter":     func(c *CNO) error { return second(c.enter("")) },
	} {
		all := make([]*CNO, rounds)
		for i := range all {
			all[i] = newCNO(t, CNOConfig{})
		}
		var closed, used []error
		require.True(t, yield.Meet(rounds, 2*time.Second,
			func() { closed = append(closed, all[len(closed)].Close()) },
			func() { used = append(used, use(all[len(used)])) }))
		for i := range closed {
			require.False(t, closed[i] == nil && used[i] == nil, "%s of a CNO that is closed", name)
		}
	}
}
