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
	"godat/internal/yield"
)

func TestAConsumerThatGoesToSleepPutsTheBackStopInCharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := newPolled()
		engine, _ := newEngine(t, dev, Config{SpinRounds: -1}, completeFunc(func([]hw.WC) {}))
		cq := attach(t, engine, nil, 64)
		synctest.Wait()
		require.True(t, dev.asleep())
		began := time.Now()
		for range 3 {
			handOver(t, engine, cq)
			require.False(t, dev.asleep(), "the back-stop naps")
			pollAs(engine, delivery.PollBeforeSleep)
			synctest.Wait()
			require.True(t, dev.asleep())
			require.Equal(t, "goroutine", engine.Way())
			found := engine.Counts().Found
			cq.complete(wcs(0, 1)...)
			synctest.Wait()
			require.Equal(t, found+1, engine.Counts().Found)
		}
		assert.Zero(t, time.Since(began), "it took no period")
		engine.Detach(cq, 64)
	})
}

// takeOne takes one event, and then has the device complete once more.
func takeOne(t *testing.T, d *evd.Dispatcher, cq *polledCQ) {
	t.Helper()
	n, err := d.Dequeue(make([]event.Event, 1))
	require.NoError(t, err)
	require.Equal(t, 1, n)
	cq.complete(wcs(0, 1)...)
}

// A back-stop that took over would fill the dispatcher beside the consumer, which would
// then find events and never poll again.
func TestTheBackStopLeavesTheDeviceToAConsumerThatIsBusyWithEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev, to := newPolled(), new(delivered)
		engine, _ := newEngine(t, dev, Config{SpinRounds: -1}, perQueue{to})
		d, cq := dispatcherOf(t, engine, to, evd.Config{QLen: 1024})
		other, otherCQ := dispatcherOf(t, engine, to, evd.Config{QLen: 256, Mode: evd.ModeChannel})
		buf := make([]event.Event, 8)
		for i := 0; engine.Way() != "consumers"; i++ {
			require.Less(t, i, 500, "the back-stop never leaves the device")
			for n := 1; n > 0; { // a consumer that finds what the back-stop delivered does not poll
				var err error
				n, err = d.Dequeue(buf)
				require.NoError(t, err)
			}
			cq.complete(wcs(0, 1)...)
			_, err := d.Dequeue(buf)
			require.NoError(t, err)
			synctest.Wait()
		}
		cq.complete(wcs(0, 64)...)
		takeOne(t, d, cq)
		arms, polls := dev.arms.Load(), dev.polls.Load()
		for range 20 {
			otherCQ.complete(wcs(0, 1)...)
			time.Sleep(drivenPeriod * 3 / 4)
			takeOne(t, d, cq)
			synctest.Wait()
		}
		assert.Equal(t, arms, dev.arms.Load(), "the back-stop took the device over")
		assert.InDelta(t, polls+15, dev.polls.Load(), 1, "the back-stop polls once a period")
		assert.GreaterOrEqual(t, len(other.C()), 18, "by which others get their events")

		time.Sleep(2 * drivenPeriod)
		synctest.Wait()
		require.True(t, dev.asleep(), "the consumer takes nothing any more, so the back-stop took over")
		engine.Detach(cq, 1024)
		engine.Detach(otherCQ, 256)
	})
}

// The consumer of a CNO may go to sleep after this Dequeue, without another.
func TestADequeueForACNOPutsTheBackStopInCharge(t *testing.T) {
	dev, to := newPolled(), new(delivered)
	engine := undriven(t, dev, to)
	d, cq := dispatcherOf(t, engine, to, evd.Config{QLen: 8})
	c, err := evd.NewCNO(evd.CNOConfig{})
	require.NoError(t, err)
	require.NoError(t, d.ModifyCNO(c))
	cq.complete(wcs(0, 1)...)
	buf := make([]event.Event, 8)
	n, err := d.Dequeue(buf)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Nil(t, engine.driver.driven.Load())
	require.NoError(t, d.Disable())
	_, err = d.Dequeue(buf)
	require.NoError(t, err)
	assert.NotNil(t, engine.driver.driven.Load())
}

// Consumers poll queues that wake no goroutine, and are no reason to leave the device to
// them.
func TestWithoutConsumersThatPollTheBackStopTakesNoNap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev, to := newPolled(), newCollector()
		engine, _ := newEngine(t, dev, Config{SpinRounds: -1}, perQueue{to})
		d := newDispatcher(t)
		solicited := delivery.Feed{Streams: event.StreamDTO, Flags: hw.SolicitedWait}
		require.NoError(t, wiring(d).Feeds().Attach(solicited))
		cq, silent := attach(t, engine, newDispatcher(t), 64), attach(t, engine, d, 64)
		require.True(t, silent.cfg.SolicitedOnly)
		synctest.Wait()
		began := time.Now()
		for sent := range 5 {
			require.True(t, dev.asleep())
			polls := dev.polls.Load()
			_, err := d.Dequeue(make([]event.Event, 1))
			require.NoError(t, err)
			require.Equal(t, polls+1, dev.polls.Load(), "the consumer polls its silent queue")
			cq.complete(wcs(sent, 1)...)
			to.requireAll(t, sent+1)
			synctest.Wait()
		}
		assert.Zero(t, time.Since(began), "the back-stop left the device alone")
		engine.Detach(cq, 64)
		engine.Detach(silent, 64)
	})
}

// A consumer takes a completion, or takes it and goes to sleep, at each moment between
// the back-stop's decision to sleep and its sleep. The back-stop may wait only if the
// next completion wakes it.
func TestTheBackStopWaitsOnlyIfTheNextCompletionWakesIt(t *testing.T) {
	for _, hint := range []delivery.PollHint{delivery.PollNow, delivery.PollBeforeSleep} {
		yield.Interleave(func() (first, second, check func()) {
			dev := &drowsy{polled: newPolled()}
			total := 0
			engine := undriven(t, dev, completeFunc(func(wcs []hw.WC) { total += len(wcs) }))
			cq := attach(t, engine, nil, 8)
			dev.woken = false
			drv := engine.driver
			first = func() {
				drv.driven.Store(nil)
				drv.sleep()
			}
			second = func() {
				dev.whisper(cq)
				pollAs(engine, hint)
			}
			check = func() {
				assert.False(t, drv.asleep.Load())
				if total == 1 && dev.blocked {
					assert.True(t, dev.late, "it waits, and was not told of a completion that a consumer took")
				}
				assert.Equal(t, hint == delivery.PollNow, drv.driven.Load() != nil)
			}
			return first, second, check
		})
	}
}

func TestTheBackStopLooksAgainBeforeItWaits(t *testing.T) {
	dev := &drowsy{polled: newPolled()}
	total := 0
	engine := undriven(t, dev, completeFunc(func(wcs []hw.WC) { total += len(wcs) }))
	cq := attach(t, engine, nil, 8)
	dev.woken = false
	dev.whisper(cq) // it comes after the last poll of the back-stop
	engine.driver.sleep()
	assert.Equal(t, 1, total)
	assert.False(t, dev.blocked)
}

// drowsy is a device whose Wait does not block. It notes whether it would have
// blocked (blocked), and whether a completion came only after Wait began (late).
type drowsy struct {
	*polled
	blocked, late bool
	whispered     bool
}

func (d *drowsy) Wait() error {
	d.blocked = !d.woken
	d.late = !d.whispered
	return nil
}

// whisper puts in a completion that wakes no waiter.
func (d *drowsy) whisper(cq *polledCQ) {
	d.whispered = true
	cq.wcs = append(cq.wcs, hw.WC{})
}

// handOver completes and polls until the back-stop leaves the device to the consumer.
func handOver(t *testing.T, engine *Engine, cq *polledCQ) {
	t.Helper()
	for range 1000 {
		cq.complete(wcs(0, 1)...)
		for range 2 * enoughPolls {
			pollAs(engine, delivery.PollNow)
		}
		if synctest.Wait(); engine.Way() == "consumers" {
			return
		}
	}
	require.Fail(t, "the back-stop never leaves the device")
}

func TestConsumersThatFindCompletionsFirstGetTheDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := newPolled()
		engine, _ := newEngine(t, dev, Config{}, completeFunc(func([]hw.WC) {}))
		cq := attach(t, engine, nil, 64)
		for round := range uint64(3) {
			handOver(t, engine, cq)
			arms := dev.arms.Load()
			time.Sleep(drivenPeriod / 2) // the back-stop looks between two turns of the consumer
			for range 10 {
				for range 2 * enoughPolls {
					pollAs(engine, delivery.PollNow)
				}
				cq.complete(wcs(0, 1)...)
				time.Sleep(drivenPeriod)
			}
			synctest.Wait()
			require.Equal(t, "consumers", engine.Way())
			require.Equal(t, arms, dev.arms.Load(), "the back-stop arms nothing meanwhile")

			found := engine.Counts().Found
			cq.complete(wcs(0, 1)...)
			time.Sleep(2 * drivenPeriod)
			synctest.Wait()
			require.Greater(t, engine.Counts().Found, found, "the consumer has stopped, which delays nothing for longer")
			require.True(t, dev.asleep())
			require.Equal(t, "goroutine", engine.Way())
			require.Equal(t, round+1, engine.Counts().HandBacks)
		}
		engine.Detach(cq, 64)
	})
}

func TestAConsumerThatPollsSeldomKeepsNoDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := newPolled()
		engine, _ := newEngine(t, dev, Config{}, completeFunc(func([]hw.WC) {}))
		cq := attach(t, engine, nil, 64)
		handOver(t, engine, cq)
		time.Sleep(drivenPeriod / 2) // the back-stop looks between two polls
		for range 3 {
			pollAs(engine, delivery.PollNow)
			time.Sleep(drivenPeriod)
		}
		synctest.Wait()
		require.Equal(t, "goroutine", engine.Way())

		began := time.Now()
		for i := range 100 { // a look at the dispatcher now and then, and completions for others
			pollAs(engine, delivery.PollNow)
			found := engine.Counts().Found
			cq.complete(wcs(i, 1)...)
			synctest.Wait()
			require.Equal(t, found+1, engine.Counts().Found)
			require.True(t, dev.asleep())
		}
		assert.Zero(t, time.Since(began), "it took no period")
		engine.Detach(cq, 64)
	})
}

// A consumer that has the device blocks in what it does with its events. Others, who take theirs from channels, wait
// for at most two periods, once.
func TestAConsumerThatBlocksDelaysOthersForTwoPeriodsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := newPolled()
		var at []time.Time
		engine, _ := newEngine(t, dev, Config{}, completeFunc(func(wcs []hw.WC) {
			for range wcs {
				at = append(at, time.Now())
			}
		}))
		blocking, other := attach(t, engine, newDispatcher(t), 64), attach(t, engine, newDispatcher(t), 64)
		handOver(t, engine, blocking)
		for i := range 100 {
			at = nil
			began := time.Now()
			other.complete(wcs(0, 3)...)
			time.Sleep(2 * drivenPeriod)
			synctest.Wait()
			require.Len(t, at, 3)
			if i > 0 {
				require.Zero(t, at[2].Sub(began), "the device is the back-stop's")
			}
		}
		assert.EqualValues(t, 1, engine.Counts().HandBacks)
		engine.Detach(blocking, 64)
		engine.Detach(other, 64)
	})
}
