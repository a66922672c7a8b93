package delivery

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trigger stands for a CNO: one bit that is sticky.
type trigger chan struct{}

func (c trigger) set() {
	select {
	case c <- struct{}{}:
	default:
	}
}

// taken takes the trigger, and reports whether there was one.
func (c trigger) taken() bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func withTrigger(t testing.TB) (*Dispatcher, trigger) {
	t.Helper()
	d, c := newDispatcher(t, Config{}), make(trigger, 1)
	d.Consumer().SetNotifier(c.set)
	return d, c
}

// A goroutine in Wait is the waiter from the beginning of Wait to its end, asleep
// or not.
func TestAnEventThatComesAsAWaiterLeavesTriggersTheCNO(t *testing.T) {
	d, c := withTrigger(t)
	require.True(t, d.main.consumer.turn.acquire(turnWaiter))
	assert.Zero(t, d.main.consumer.recount(), "the waiter finds nothing")
	put(t, d.Main(), 1)
	assert.False(t, c.taken())
	d.main.consumer.releaseTurn()
	assert.True(t, c.taken())
}

// A waiter with a time limit comes and goes while events come.
func TestNoTriggerIsLostBehindAWaiterThatLeaves(t *testing.T) {
	d, c := withTrigger(t)
	d.main.consumer.spins = 0
	for i := range attempts() {
		ctx, cancel := context.WithCancel(background)
		var wg sync.WaitGroup
		wg.Go(func() { put(t, d.Main(), i) })
		wg.Go(cancel)
		_, nmore, err := waitOne(d, ctx, 1)
		wg.Wait()
		triggered := c.taken()
		if err == nil || nmore > 0 {
			drain(t, d)
			continue
		}
		require.True(t, triggered, "round %d: no trigger for the event", i)
		require.Equal(t, list(i), drain(t, d))
	}
}
