package evd

import (
	"errors"
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

func TestAnAgentIsCalledOnceUntilItIsSetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []*Dispatcher
		agent := Agent(func(d *Dispatcher) { calls = append(calls, d) })
		c := newCNO(t, CNOConfig{Agent: agent})
		d := withCNO(t, c)
		synctest.Wait()
		assert.Empty(t, calls)
		put(t, d.inner.Main(), 1)
		synctest.Wait()
		assert.Equal(t, []*Dispatcher{d}, calls)
		p, err := c.Query()
		require.NoError(t, err)
		assert.Nil(t, p.Agent, "it is not set any more")
		assert.Same(t, d, triggered(t, c), "the trigger is there for waiters as well")
		put(t, d.inner.Main(), 2)
		synctest.Wait()
		assert.Len(t, calls, 1, "it was called twice")
		assert.Same(t, d, triggered(t, c))

		require.NoError(t, c.ModifyAgent(agent))
		synctest.Wait()
		assert.Len(t, calls, 1, "the CNO is not triggered")
		put(t, d.inner.Main(), 3)
		synctest.Wait()
		assert.Len(t, calls, 2)

		require.NoError(t, c.ModifyAgent(agent))
		synctest.Wait()
		assert.Len(t, calls, 3, "the CNO is triggered still")

		assert.NotNil(t, triggered(t, c))
		require.NoError(t, c.ModifyAgent(agent))
		require.NoError(t, c.ModifyAgent(nil))
		put(t, d.inner.Main(), 4)
		synctest.Wait()
		assert.Len(t, calls, 3, "it was taken away")
	})
}

func TestATriggerWakesAWaiterAndCallsTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		c := newCNO(t, CNOConfig{Agent: func(*Dispatcher) { calls.Add(1) }})
		d := withCNO(t, c)
		go func() {
			_, err := c.Wait(t.Context())
			assert.NoError(t, err)
			calls.Add(1)
		}()
		synctest.Wait()
		put(t, d.inner.Main(), 1)
		synctest.Wait()
		assert.EqualValues(t, 2, calls.Load())
		assert.Nil(t, triggered(t, c))
	})
}

// An agent that follows the example of ModifyAgent misses nothing.
func TestAnAgentThatSetsItselfFindsEverything(t *testing.T) {
	const events = 5000
	atEach(t, func(t *testing.T) {
		var c *CNO
		var d *Dispatcher
		done := make(chan struct{})
		next := uint64(0)
		buf := make([]event.Event, 4)
		var agent Agent
		agent = func(*Dispatcher) {
			_, _ = c.Trigger()
			for {
				n, err := d.Dequeue(buf)
				if err != nil || n == 0 {
					break
				}
				for _, ev := range buf[:n] {
					if assert.Equal(t, next, ev.Cookie) {
						next++
					}
				}
			}
			if next == events {
				close(done)
				return
			}
			assert.NoError(t, c.ModifyAgent(agent))
		}
		c = newCNO(t, CNOConfig{Agent: agent})
		d = newDispatcher(t, Config{CNO: c})
		for i := range uint64(events) {
			for !d.inner.Main().Reserve(1) {
				runtime.Gosched()
			}
			d.inner.Main().Put(dto(i))
			d.inner.Main().Flush()
		}
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatal("a trigger was lost")
		}
	})
}

func TestAgentsRunInThePoolOneAtATime(t *testing.T) {
	var mu sync.Mutex
	var tasks []func()
	var full error
	submit := func(task func()) error {
		mu.Lock()
		defer mu.Unlock()
		if full == nil {
			tasks = append(tasks, task)
		}
		return full
	}
	var calls []string
	say := func(what string) Agent { return func(*Dispatcher) { calls = append(calls, what) } }
	c := newCNO(t, CNOConfig{Agent: say("first"), home: home{submit: submit}})
	d := withCNO(t, c)
	put(t, d.inner.Main(), 1)
	require.NoError(t, c.ModifyAgent(say("second"))) // called at once, because the CNO is triggered
	require.NoError(t, c.ModifyAgent(nil))
	require.Len(t, tasks, 1)
	assert.Empty(t, calls)
	tasks[0]()
	assert.Equal(t, []string{"first", "second"}, calls)

	full = errors.New("the pool has no place")
	called := make(chan struct{})
	require.NoError(t, c.ModifyAgent(func(*Dispatcher) { close(called) }))
	<-called // called in a goroutine of its own
}

func TestCloseWaitsForTheAgent(t *testing.T) {
	var c *CNO
	inside, leave, left := make(chan struct{}), make(chan struct{}), false
	c = newCNO(t, CNOConfig{Agent: func(*Dispatcher) {
		assert.True(t, c.inUpcall())
		isError(t, c.Close(), hw.InvalidState, hw.NoSubtype)
		close(inside)
		<-leave
		left = true
	}})
	assert.False(t, c.inUpcall())
	d := newDispatcher(t, Config{CNO: c})
	put(t, d.inner.Main(), 1)
	<-inside
	require.NoError(t, d.Close())
	closing := make(chan error)
	go func() { closing <- c.Close() }()
	eventually(t, "it is closed", func() bool { return errors.Is(second(c.Trigger()), hw.ErrInvalidHandle) })
	close(leave)
	require.NoError(t, <-closing)
	assert.True(t, left)
}

func TestAnAgentGetsNoDispatcherThatHasLeftTheCNO(t *testing.T) {
	called := make(chan *Dispatcher, 1)
	c := newCNO(t, CNOConfig{})
	a, _ := withCNO(t, c), withCNO(t, c)
	put(t, a.inner.Main(), 1)
	require.NoError(t, a.Close())
	require.NoError(t, c.ModifyAgent(func(d *Dispatcher) { called <- d }))
	assert.Nil(t, <-called)
}

func TestTriggeringAllocatesNothing(t *testing.T) {
	c := newCNO(t, CNOConfig{})
	d := newDispatcher(t, Config{CNO: c})
	ev, buf := dto(1), make([]event.Event, 2)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		d.inner.Main().Reserve(1)
		d.inner.Main().Put(ev)
		d.inner.Main().Flush()
		_, _ = c.Wait(background)
		_, _ = d.Dequeue(buf)
	}))
}

// A task that has nothing more to call may end beside its successor.
func TestAnAgentBesideATaskThatEndsIsAnUpcall(t *testing.T) {
	c := newCNO(t, CNOConfig{home: home{submit: func(func()) error { return nil }}})
	closed := make(chan error, 1)
	c.tasks++
	c.running = true
	c.goroutine.Store(1)
	_, more := c.nextCall()
	require.False(t, more)
	ending := make(chan struct{})
	require.NoError(t, c.ModifyAgent(func(*Dispatcher) {
		<-ending
		closed <- c.Close()
	}))
	d := withCNO(t, c)
	put(t, d.inner.Main(), 1)
	require.NoError(t, d.Close())
	go c.run()
	eventually(t, "the agent is called", c.isCalling)
	c.endTask(true)
	close(ending)
	isError(t, <-closed, hw.InvalidState, hw.NoSubtype)
	require.ErrorIs(t, second(c.Trigger()), &hw.Error{Type: hw.QueueEmpty}, "the refused Close had an effect")
}

func (c *CNO) isCalling() bool { return c.goroutine.Load() > 1 }

func TestAnAgentThatIsCalledLateGetsNoDispatcherThatHasLeft(t *testing.T) {
	var tasks []func()
	c := newCNO(t, CNOConfig{home: home{submit: func(task func()) error {
		tasks = append(tasks, task)
		return nil
	}}})
	calls := 0
	require.NoError(t, c.ModifyAgent(func(d *Dispatcher) {
		calls++
		assert.Nil(t, d)
	}))
	a, _ := withCNO(t, c), withCNO(t, c)
	put(t, a.inner.Main(), 1)
	require.NoError(t, a.Close())
	require.Len(t, tasks, 1)
	tasks[0]()
	assert.Equal(t, 1, calls)
}
