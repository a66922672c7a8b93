package polling

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
)

// underWay runs a test with each way to empty a device's queues.
func underWay(t *testing.T, test func(t *testing.T, way string, start func(testing.TB, hw.Polled, Config, Completer) (*Engine, *asyncLog))) {
	t.Run("thread", func(t *testing.T) { test(t, "thread", newTestEngine) })
	t.Run("goroutine", func(t *testing.T) { test(t, "goroutine", newEngine) })
}

// requireTrue compares the counts with what the device has seen.
func requireTrue(t *testing.T, dev *polled, c hw.PollCounts) {
	t.Helper()
	require.EqualValues(t, dev.polls.Load(), c.Found+c.Empty, "polls")
	require.EqualValues(t, dev.arms.Load(), c.Arms, "arms")
	require.EqualValues(t, dev.waits.Load(), c.Waits, "waits")
	require.LessOrEqual(t, c.Consumers, c.Found+c.Empty)
}

func TestCountsAreWhatTheDeviceSaw(t *testing.T) {
	underWay(t, func(t *testing.T, way string, start func(testing.TB, hw.Polled, Config, Completer) (*Engine, *asyncLog)) {
		dev := newPolled()
		engine, _ := start(t, dev, Config{SpinRounds: 3}, completeFunc(func([]hw.WC) {}))
		assert.Equal(t, way, engine.Way(), "no consumer has polled")
		cq := attach(t, engine, nil, 64)
		const rounds = 20
		for i := range rounds {
			waitAsleep(t, dev)
			requireTrue(t, dev, engine.Counts())
			if i%2 == 0 {
				pollAs(engine, delivery.PollNow)
			}
			cq.complete(wcs(i, 1)...)
			require.Eventually(t, func() bool { return engine.Counts().Found == uint64(i+1) }, time.Minute, 10*time.Microsecond)
		}
		waitAsleep(t, dev)
		c := engine.Counts()
		requireTrue(t, dev, c)
		assert.GreaterOrEqual(t, c.Waits, uint64(rounds), "each ended a sleep")
		if way == "goroutine" {
			assert.EqualValues(t, rounds/2, c.Consumers)
		}
	})
}

// waitAsleep waits until the poller waits for the device.
func waitAsleep(t *testing.T, dev *polled) {
	t.Helper()
	require.Eventually(t, dev.asleep, time.Minute, 10*time.Microsecond)
}

// The deliverers of a thread sleep in the network poller, which no bubble knows.
func TestNothingIsCountedWhileNothingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := newPolled()
		engine, _ := newEngine(t, dev, Config{}, completeFunc(func([]hw.WC) {}))
		cq := attach(t, engine, nil, 64)
		for i := range 100 {
			pollAs(engine, delivery.PollNow)
			cq.complete(wcs(i, 1)...)
			synctest.Wait()
		}
		handOver(t, engine, cq)
		time.Sleep(3 * drivenPeriod)
		synctest.Wait()
		require.True(t, dev.asleep())
		before := engine.Counts()
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, before, engine.Counts(), "an idle device is polled, or something sleeps and wakes")
		engine.Detach(cq, 64)
	})
}

func TestAConsumersPollsAreItsOwn(t *testing.T) {
	dev, to := newPolled(), new(delivered)
	engine := undriven(t, dev, to)
	d, cq := dispatcherOf(t, engine, to, evd.Config{QLen: 8})
	buf := make([]event.Event, 8)
	for range 3 {
		_, err := d.Dequeue(buf)
		require.NoError(t, err)
	}
	cq.complete(wcs(0, 2)...)
	_, err := d.Dequeue(buf)
	require.NoError(t, err)
	c := engine.Counts()
	assert.Equal(t, hw.PollCounts{Found: 1, Empty: 3, Consumers: 4}, c)
}
