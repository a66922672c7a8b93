package evd

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
)

func TestAContextIsFoundByItsCookieOnce(t *testing.T) {
	c := NewContexts[string](2)
	a, ok := c.Put("a")
	require.True(t, ok)
	b, ok := c.Put("b")
	require.True(t, ok)
	_, ok = c.Put("c")
	require.False(t, ok, "the table is full")

	v, ok := c.Take(a)
	assert.True(t, ok)
	assert.Equal(t, "a", v)
	_, ok = c.Take(a)
	assert.False(t, ok, "taken already")
	again, ok := c.Put("d")
	require.True(t, ok)
	assert.NotEqual(t, a, again, "the place is the same, the cookie is not")
	_, ok = c.Take(a)
	assert.False(t, ok, "the old cookie names nothing")
	v, _ = c.Take(again)
	assert.Equal(t, "d", v)
	v, _ = c.Take(b)
	assert.Equal(t, "b", v)
}

func TestACookieThatWasNeverGivenFindsNothing(t *testing.T) {
	c := NewContexts[int](1)
	for _, cookie := range []uint64{0, 1, 1 << 32, 2 << 32, 1<<32 | 1, 1 << 63, ^uint64(0)} {
		_, ok := c.Take(cookie)
		assert.False(t, ok, "%#x", cookie)
	}
}

func TestACookieKeepsItsHighestBitClear(t *testing.T) {
	c := NewContexts[int](1)
	c.slots[0].uses.Store(1<<32 - 2)
	for range 3 {
		cookie, ok := c.Put(7)
		require.True(t, ok)
		assert.Zero(t, cookie>>63)
		v, ok := c.Take(cookie)
		assert.True(t, ok)
		assert.Equal(t, 7, v)
	}
}

func TestATakenContextIsNotKeptAlive(t *testing.T) {
	c := NewContexts[*int](1)
	cookie, _ := c.Put(new(int))
	_, _ = c.Take(cookie)
	assert.Nil(t, c.slots[0].val)
}

func TestContextsAllocateNothing(t *testing.T) {
	c := NewContexts[[4]int](4)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		cookie, _ := c.Put([4]int{1})
		_, _ = c.Take(cookie)
	}))
}

func TestATableOfImpossibleSizePanics(t *testing.T) {
	for _, n := range []int{-1, 0, MaxQLen + 1} {
		assert.Panics(t, func() { NewContexts[int](n) }, "%d", n)
	}
}

func TestOfSeveralTakersOneGetsTheContext(t *testing.T) {
	c := NewContexts[int](2)
	for i := range 500 {
		cookie, ok := c.Put(i)
		require.True(t, ok)
		var (
			wg   sync.WaitGroup
			got  [3]bool
			vals [3]int
		)
		for g := range got {
			wg.Go(func() { vals[g], got[g] = c.Take(cookie) })
		}
		wg.Wait()
		n := 0
		for g := range got {
			if got[g] {
				n++
				assert.Equal(t, i, vals[g])
			}
		}
		require.Equal(t, 1, n)
	}
}

func TestAClosedChannelEndsAWait(t *testing.T) {
	d := newDispatcher(t, Config{QLen: 4})
	stop := make(chan struct{})
	ctx := Until(stop)
	require.NoError(t, ctx.Err())
	ended := make(chan error, 1)
	go func() {
		_, _, err := d.Wait(ctx, 1)
		ended <- err
	}()
	eventually(t, "the waiter sleeps", func() bool { return sleeps(t, d) })
	close(stop)
	err := <-ended
	require.ErrorIs(t, err, hw.ErrInterrupted)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, ctx.Err(), context.Canceled)
}

func TestAClosedChannelEndsAWaitForOneOperation(t *testing.T) {
	d := newDispatcher(t, Config{QLen: 4, Mode: ModeChannel})
	shot := d.NewOneShot()
	defer shot.Release()
	q, err := shot.inner.Arm()
	require.NoError(t, err)
	stop := make(chan struct{})
	close(stop)
	_, err = shot.Wait(Until(stop))
	require.ErrorIs(t, err, hw.ErrInterrupted)
	q.Put(&event.Event{Number: event.DTOCompletion})
	_, err = shot.Wait(Until(stop))
	require.NoError(t, err, "the event was still to come")
}

func TestAChannelAndATimeLimitEndAWaitTogether(t *testing.T) {
	ctx, cancel := context.WithTimeout(Until(make(chan struct{})), time.Nanosecond)
	defer cancel()
	d := newDispatcher(t, Config{QLen: 4})
	_, _, err := d.Wait(ctx, 1)
	require.ErrorIs(t, err, hw.ErrTimeout)
}

func TestUntilAllocatesNothing(t *testing.T) {
	stop := make(chan struct{})
	var ctx context.Context
	assert.Zero(t, testing.AllocsPerRun(10, func() { ctx = Until(stop) }))
	assert.NotNil(t, ctx.Done())
	_, limited := ctx.Deadline()
	assert.False(t, limited)
	assert.Nil(t, ctx.Value("key"))
}
