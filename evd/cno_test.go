package evd

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
	"godat/internal/door"
)

func newCNO(t testing.TB, cfg CNOConfig) *CNO {
	t.Helper()
	c, err := NewCNO(cfg)
	require.NoError(t, err)
	t.Cleanup(c.abort)
	return c
}

// withCNO makes a dispatcher that takes software events as well, with a CNO.
func withCNO(t testing.TB, c *CNO) *Dispatcher {
	t.Helper()
	return newDispatcher(t, Config{CNO: c, Streams: event.DefaultStreams | event.StreamSoftware})
}

// triggered takes the trigger; nil when there is none.
func triggered(t testing.TB, c *CNO) *Dispatcher {
	t.Helper()
	d, err := c.Trigger()
	if err != nil {
		isError(t, err, hw.QueueEmpty, hw.NoSubtype)
		return nil
	}
	require.NotNil(t, d)
	return d
}

func TestATriggerIsStickyAndOne(t *testing.T) {
	c := newCNO(t, CNOConfig{})
	a, b := withCNO(t, c), withCNO(t, c)
	assert.Nil(t, triggered(t, c), "a new one is not triggered")
	put(t, a.inner.Main(), 1, 2)
	require.NoError(t, b.PostSoftware("x"))
	d, err := c.Wait(background)
	require.NoError(t, err)
	assert.Same(t, a, d, "the first that came")
	assert.Nil(t, triggered(t, c), "three events made one trigger")
	put(t, b.inner.Main(), 3)
	assert.Same(t, b, triggered(t, c))
}

// A deadline that passes is QUEUE_EMPTY here, not TIMEOUT_EXPIRED.
func TestCNOWaitThatEndsEarlySaysWhy(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	c := newCNO(t, CNOConfig{})
	d, err := c.Wait(expired())
	assert.Nil(t, d)
	isError(t, err, hw.QueueEmpty, hw.NoSubtype)
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	d, err = c.Wait(canceled)
	assert.Nil(t, d)
	isError(t, err, hw.InterruptedCall, hw.NoSubtype)
	assert.ErrorIs(t, err, context.Canceled)

	a := withCNO(t, c)
	put(t, a.inner.Main(), 1)
	d, err = c.Wait(expired())
	require.NoError(t, err, "a trigger goes before the time limit")
	assert.Same(t, a, d)
}

func TestCNOWaitEndsAtItsDeadlineExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCNO(t, CNOConfig{})
		const limit = 71 * time.Minute
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		start := time.Now()
		_, err := c.Wait(ctx)
		isError(t, err, hw.QueueEmpty, hw.NoSubtype)
		assert.Equal(t, limit, time.Since(start))
	})
}

func TestEachTriggerWakesOneWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCNO(t, CNOConfig{})
		d := withCNO(t, c)
		woken := make(chan *Dispatcher, 3)
		for range 3 {
			go func() {
				d, err := c.Wait(context.Background())
				assert.NoError(t, err)
				woken <- d
			}()
		}
		for n := range 3 {
			synctest.Wait()
			assert.Len(t, woken, n)
			put(t, d.inner.Main(), 1)
		}
		synctest.Wait()
		assert.Len(t, woken, 3)
		assert.Same(t, d, <-woken)
		assert.Nil(t, triggered(t, c))
	})
}

func TestSilentEventsDoNotTrigger(t *testing.T) {
	c := newCNO(t, CNOConfig{})
	d := withCNO(t, c)
	putSilent(t, d.inner.Main(), 1, 2)
	assert.Nil(t, triggered(t, c))
	put(t, d.inner.Main(), 3)
	assert.Same(t, d, triggered(t, c))
	assert.Equal(t, list(1, 2, 3), drain(t, d))
	putSilent(t, d.inner.Main(), 4)
	assert.Nil(t, triggered(t, c), "what was reported is over")
	putEvent(t, d.inner.Main(), flushed(5), true)
	assert.Same(t, d, triggered(t, c), "errors notify")
	d.inner.PutAsync(asyncNode(6))
	assert.Same(t, d, triggered(t, c))

	// A poster that finds no room triggers the CNO, so that a consumer makes room.
	for range 8 - 2 {
		putSilent(t, d.inner.Main(), 7)
	}
	assert.Nil(t, triggered(t, c))
	require.False(t, d.inner.Main().Reserve(1))
	assert.Same(t, d, triggered(t, c))
	d.Flush()
	assert.Same(t, d, triggered(t, c))
}

// While a goroutine is in Wait, events go to it and do not trigger the CNO.
func TestAWaiterGoesBeforeTheCNO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCNO(t, CNOConfig{})
		d := withCNO(t, c)
		var nmore int
		var err error
		wait := func(ctx context.Context, threshold int) {
			go func() { _, nmore, err = d.Wait(ctx, threshold) }()
			synctest.Wait()
		}
		wait(context.Background(), 1)
		put(t, d.inner.Main(), 1)
		synctest.Wait()
		require.NoError(t, err)
		assert.Nil(t, triggered(t, c), "the waiter had it")

		wait(context.Background(), 3)
		put(t, d.inner.Main(), 2)
		synctest.Wait()
		assert.Nil(t, triggered(t, c), "too few for the waiter are his, too")
		put(t, d.inner.Main(), 3, 4)
		synctest.Wait()
		require.NoError(t, err)
		assert.Equal(t, 2, nmore)
		assert.Nil(t, triggered(t, c))
		put(t, d.inner.Main(), 5)
		assert.Same(t, d, triggered(t, c), "no goroutine waits any more")

		// Events that a waiter counted when it gave up do not trigger the CNO.
		drain(t, d)
		ctx, cancel := context.WithCancel(context.Background())
		wait(ctx, 2)
		put(t, d.inner.Main(), 6)
		cancel()
		synctest.Wait()
		assert.Error(t, err)
		assert.Equal(t, 1, nmore)
		assert.Nil(t, triggered(t, c))
		putSilent(t, d.inner.Main(), 7)
		assert.Nil(t, triggered(t, c))
		put(t, d.inner.Main(), 8)
		assert.Same(t, d, triggered(t, c))
	})
}

func TestATriggerOnItsWayIsForgottenWithTheCNO(t *testing.T) {
	c := newCNO(t, CNOConfig{})
	d := withCNO(t, c)
	require.NoError(t, d.ModifyCNO(nil))
	c.trigger(d)
	assert.Nil(t, triggered(t, c))
}

func TestDisabledDispatchersDoNotTrigger(t *testing.T) {
	c := newCNO(t, CNOConfig{})
	d := withCNO(t, c)
	state := func() State {
		p, err := d.Query()
		require.NoError(t, err)
		return p.State
	}
	assert.Equal(t, StateEnabled|StateWaitable|ConfigThreshold, state())
	require.NoError(t, d.Enable())
	require.NoError(t, d.Disable())
	require.NoError(t, d.Disable())
	assert.Equal(t, StateDisabled|StateWaitable|ConfigThreshold, state())
	put(t, d.inner.Main(), 1)
	d.inner.PutAsync(asyncNode(2))
	assert.Nil(t, triggered(t, c))
	_, nmore, err := d.Wait(background, 1)
	require.NoError(t, err, "it can be waited for")
	assert.Equal(t, 1, nmore)
	assert.Equal(t, list(1), drain(t, d))
	require.NoError(t, d.Enable())
	assert.Nil(t, triggered(t, c), "nothing is queued")
	putSilent(t, d.inner.Main(), 3)
	assert.Nil(t, triggered(t, c), "what was disabled is over")

	require.NoError(t, d.Disable())
	put(t, d.inner.Main(), 4)
	require.NoError(t, d.Enable())
	assert.Same(t, d, triggered(t, c), "what is queued triggers")
	require.NoError(t, d.Enable())
	assert.Nil(t, triggered(t, c), "enabling again has no effect")
}

func TestModifyCNOTriggersForQueuedEvents(t *testing.T) {
	a, b := newCNO(t, CNOConfig{}), newCNO(t, CNOConfig{})
	d := newDispatcher(t, Config{})
	put(t, d.inner.Main(), 1)
	require.NoError(t, d.ModifyCNO(nil), "it has none")
	require.NoError(t, d.ModifyCNO(a))
	assert.Same(t, d, triggered(t, a))
	require.NoError(t, d.ModifyCNO(a))
	assert.Nil(t, triggered(t, a), "it is the same one")
	p, err := d.Query()
	require.NoError(t, err)
	assert.Same(t, a, p.CNO)

	require.NoError(t, d.ModifyCNO(b))
	assert.Nil(t, triggered(t, a))
	assert.Same(t, d, triggered(t, b))
	require.NoError(t, a.Close(), "no dispatcher has it")
	isError(t, d.ModifyCNO(a), hw.InvalidHandle, hw.HandleCNO)
	put(t, d.inner.Main(), 2)
	assert.Same(t, d, triggered(t, b), "the refused call had an effect")

	require.NoError(t, d.Disable())
	require.NoError(t, d.ModifyCNO(nil))
	require.NoError(t, d.ModifyCNO(b))
	assert.Nil(t, triggered(t, b), "it is disabled")
	require.NoError(t, d.ModifyCNO(nil))
	require.NoError(t, d.Enable())
	put(t, d.inner.Main(), 3)
	assert.Nil(t, triggered(t, b))
	drain(t, d)
	require.NoError(t, d.ModifyCNO(b))
	assert.Nil(t, triggered(t, b), "nothing is queued")
}

// A dispatcher that delivers by itself is a permanent waiter.
func TestOnlyAQueueHasACNO(t *testing.T) {
	c := newCNO(t, CNOConfig{})
	for _, mode := range []Mode{ModeChannel, ModeBatch, ModeCallback} {
		_, err := New(called(Config{QLen: 1, Mode: mode, CNO: c}))
		isError(t, err, hw.InvalidState, hw.StateEVDWaiter, mode)
		d := newDispatcher(t, Config{Mode: mode})
		isError(t, d.ModifyCNO(c), hw.InvalidState, hw.StateEVDWaiter, mode)
		assert.NoError(t, d.ModifyCNO(nil))
		assert.NoError(t, d.Disable())
		assert.NoError(t, d.Enable())
	}
	require.NoError(t, c.Close(), "a refused call had an effect")
}

func TestADispatcherOfAnotherAdapterCantHaveTheCNO(t *testing.T) {
	c := newCNO(t, CNOConfig{home: home{ia: "one"}})
	_, err := New(Config{QLen: 1, CNO: c, home: home{ia: "two"}})
	isError(t, err, hw.InvalidHandle, hw.HandleCNO)
	newDispatcher(t, Config{CNO: c, home: home{ia: "one"}})
	d := newDispatcher(t, Config{CNO: c})
	isError(t, c.Close(), hw.InvalidState, hw.StateCNOInUse)
	p, err := d.Query()
	require.NoError(t, err)
	assert.Equal(t, Param{QLen: 8, State: StateEnabled | StateWaitable | ConfigThreshold, CNO: c, Streams: 0x1f0}, p)
}

func TestACNOTellsWhatItIs(t *testing.T) {
	called := make(chan *Dispatcher, 1)
	agent := Agent(func(d *Dispatcher) { called <- d })
	c := newCNO(t, CNOConfig{home: home{ia: "ia"}, Agent: agent})
	home, err := c.Home(door.Key{})
	require.NoError(t, err)
	assert.Equal(t, "ia", home)
	p, err := c.Query()
	require.NoError(t, err)
	require.NotNil(t, p.Agent)
	p.Agent(nil)
	assert.Nil(t, <-called)
	require.NoError(t, c.ModifyAgent(nil))
	p, err = c.Query()
	require.NoError(t, err)
	assert.Equal(t, CNOConfig{}, p)
	_, err = c.FD()
	isError(t, err, hw.InvalidState, hw.NoSubtype)
}

func TestADescriptorIsReadableWhileTheCNOIsTriggered(t *testing.T) {
	c, err := NewCNO(CNOConfig{Descriptor: true})
	if errors.Is(err, errors.ErrUnsupported) {
		isError(t, err, hw.ModelNotSupported, hw.NoSubtype)
		t.Skip("capability: eventfd")
	}
	require.NoError(t, err)
	_, err = NewCNO(CNOConfig{Descriptor: true, Agent: func(*Dispatcher) {}})
	isError(t, err, hw.InvalidParameter, hw.Arg2)
	isError(t, c.ModifyAgent(func(*Dispatcher) {}), hw.InvalidState, hw.NoSubtype)
	fd, err := c.FD()
	require.NoError(t, err)
	p, err := c.Query()
	require.NoError(t, err)
	assert.Equal(t, CNOConfig{Descriptor: true}, p)

	d := withCNO(t, c)
	assert.False(t, readable(t, fd))
	for range 3 {
		put(t, d.inner.Main(), 1, 2)
		assert.True(t, readable(t, fd))
		assert.True(t, readable(t, fd), "looking changes nothing")
		assert.Same(t, d, triggered(t, c))
		assert.False(t, readable(t, fd))
		put(t, d.inner.Main(), 3)
		_, err = c.Wait(background)
		require.NoError(t, err)
		assert.False(t, readable(t, fd), "a waiter took the trigger")
		drain(t, d)
	}
	put(t, d.inner.Main(), 4)
	require.NoError(t, d.Close())
	assert.False(t, readable(t, fd))
	require.NoError(t, c.Close())
	_, err = os.Stat(descriptorPath(fd))
	assert.ErrorIs(t, err, os.ErrNotExist, "the descriptor is open")
}

func TestEnableTriggersForAnErrorThatWaits(t *testing.T) {
	c := newCNO(t, CNOConfig{})
	d := withCNO(t, c)
	require.NoError(t, d.Disable())
	d.inner.PutAsync(asyncNode(1))
	require.Nil(t, triggered(t, c))
	require.NoError(t, d.Enable())
	assert.Same(t, d, triggered(t, c))
}
