package polling

import (
	"context"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
	"godat/internal/owner"
)

// perQueue hands a batch to another Completer, queue by queue.
type perQueue struct{ to Completer }

func (p perQueue) Complete(wcs []hw.WC) {
	for len(wcs) > 0 {
		n := 1
		for n < len(wcs) && wcs[n].CQ == wcs[0].CQ {
			n++
		}
		p.to.Complete(wcs[:n])
		wcs = wcs[n:]
	}
}

// delivered puts completions into dispatchers, by their queues, and notes which
// goroutine called it.
type delivered struct {
	to map[uint32]*evd.Dispatcher // by tag
	by uintptr                    // the goroutine
}

func (d *delivered) Complete(wcs []hw.WC) {
	d.by = owner.Goroutine()
	for _, wc := range wcs {
		q := wiring(d.to[wc.CQ]).Main()
		q.PutSuccess(new(delivery.Lane), nil, wc.ID, hw.OpRecv, 0)
		q.Flush()
	}
}

// undriven is an engine whose queues consumers poll, without a back-stop.
func undriven(t testing.TB, dev hw.Polled, to Completer) *Engine {
	t.Helper()
	engine := New(dev, 1<<16, Config{}, nil)
	engine.to, engine.driver.to = to, to
	return engine
}

// pollAs polls as a consumer that takes no events.
func pollAs(engine *Engine, hint delivery.PollHint) { engine.pollDevice(new(delivery.Consumer), hint) }

// dispatcherOf makes a dispatcher with room reserved, and a queue of its own.
func dispatcherOf(t testing.TB, engine *Engine, to *delivered, cfg evd.Config) (*evd.Dispatcher, *polledCQ) {
	t.Helper()
	d, err := evd.New(cfg)
	require.NoError(t, err)
	require.True(t, wiring(d).Main().Reserve(cfg.QLen))
	cq := attach(t, engine, d, cfg.QLen)
	if to.to == nil {
		to.to = make(map[uint32]*evd.Dispatcher)
	}
	to.to[cq.cfg.Tag] = d
	return d, cq
}

func TestADequeueDeliversWhatTheDeviceHas(t *testing.T) {
	dev, to := newPolled(), new(delivered)
	engine := undriven(t, dev, to)
	own, cq := dispatcherOf(t, engine, to, evd.Config{QLen: 8})
	other, otherCQ := dispatcherOf(t, engine, to, evd.Config{QLen: 8, Mode: evd.ModeChannel})
	buf := make([]event.Event, 8)
	n, err := own.Dequeue(buf)
	require.NoError(t, err)
	assert.Zero(t, n)

	cq.complete(wcs(10, 3)...)
	otherCQ.complete(wcs(20, 2)...)
	polls := dev.polls.Load()
	n, err = own.Dequeue(buf)
	require.NoError(t, err)
	require.Equal(t, 3, n, "what its own poll found")
	for i, ev := range buf[:n] {
		assert.EqualValues(t, 10+i, ev.Cookie)
	}
	assert.Equal(t, owner.Goroutine(), to.by, "another goroutine delivered")
	for i := range 2 {
		assert.EqualValues(t, 20+i, (<-other.C()).Cookie, "others get theirs as well")
	}
	assert.Equal(t, polls+1, dev.polls.Load(), "it polls once")

	cq.complete(wcs(13, 2)...)
	n, err = own.Dequeue(buf[:1])
	require.NoError(t, err)
	require.Equal(t, 1, n)
	polls = dev.polls.Load()
	n, err = own.Dequeue(buf)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	assert.Equal(t, polls, dev.polls.Load(), "a Dequeue that finds something does not poll")

	engine.Detach(cq, 8)
	_, err = own.Dequeue(buf)
	require.NoError(t, err)
	assert.Equal(t, polls, dev.polls.Load(), "a dispatcher without a queue does not poll")
}

func TestAWaitPollsOnceItself(t *testing.T) {
	dev, to := newPolled(), new(delivered)
	engine := undriven(t, dev, to)
	d, cq := dispatcherOf(t, engine, to, evd.Config{QLen: 8})
	cq.complete(wcs(1, 2)...)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	ev, nmore, err := d.Wait(over, 1)
	require.NoError(t, err, "it was there before the time was over")
	assert.EqualValues(t, 1, ev.Cookie)
	assert.Equal(t, 1, nmore)
	assert.Equal(t, owner.Goroutine(), to.by)
}

// While the token's holder delivers, no other goroutine polls or waits for the token.
func TestOneConsumerPollsAtATime(t *testing.T) {
	dev := newPolled()
	var engine *Engine
	calls := 0
	engine = undriven(t, dev, completeFunc(func([]hw.WC) {
		calls++
		polls := dev.polls.Load()
		pollAs(engine, delivery.PollNow) // as the other consumers would
		pollAs(engine, delivery.PollBeforeSleep)
		assert.Equal(t, polls, dev.polls.Load())
	}))
	cq := attach(t, engine, nil, 8)
	cq.complete(wcs(0, 1)...)
	pollAs(engine, delivery.PollNow)
	cq.complete(wcs(1, 1)...)
	pollAs(engine, delivery.PollNow)
	assert.Equal(t, 2, calls)
}

// After a poll that found completions the device may have more work for the next poll,
// without a wake-up for it.
func TestAConsumerThatGetsCompletionsEndsTheBackStopsWait(t *testing.T) {
	dev := newPolled()
	engine := undriven(t, dev, completeFunc(func([]hw.WC) {}))
	cq := attach(t, engine, nil, 8)
	woken := func() bool { w := dev.woken; dev.woken = false; return w }
	require.True(t, woken(), "by the new queue")
	for _, hint := range []delivery.PollHint{delivery.PollNow, delivery.PollBeforeSleep} {
		engine.driver.asleep.Store(true)
		pollAs(engine, hint)
		assert.False(t, woken(), "nothing came")
		cq.complete(wcs(0, 1)...)
		pollAs(engine, hint)
		assert.True(t, woken())
		assert.False(t, engine.driver.asleep.Load())
		cq.complete(wcs(1, 1)...)
		pollAs(engine, hint)
		assert.False(t, woken(), "it is awake")
	}
	engine.driver.asleep.Store(true)
	polls := dev.polls.Load()
	pollAs(engine, delivery.PollAgain)
	assert.False(t, woken(), "the back-stop knows of a Wait that has polled")
	pollAs(engine, delivery.PollElsewhere)
	assert.True(t, woken())
	assert.Equal(t, polls, dev.polls.Load(), "neither polls itself")
}

func TestAWaitThatLooksAgainLeavesThePinnedPollerAsleep(t *testing.T) {
	dev := newPolled()
	engine := threaded(dev, Config{}, nil)
	engine.poller.asleep.Store(true)
	pollAs(engine, delivery.PollAgain)
	assert.True(t, engine.poller.asleep.Load())
	pollAs(engine, delivery.PollBeforeSleep)
	assert.False(t, engine.poller.asleep.Load())
}

func TestAThreadIsStartedOnlyForAProgramThatNamesItsProcessors(t *testing.T) {
	for _, procs := range []int{1, 2, 8} {
		before := goruntime.GOMAXPROCS(procs)
		assert.Nil(t, New(newPolled(), 1, Config{}, nil).poller, "%d processors", procs)
		assert.NotNil(t, New(newPolled(), 1, Config{CPUs: []int{0}}, nil).poller)
		goruntime.GOMAXPROCS(before)
	}
}

// In each round some consumers poll, some go to sleep, or none does anything; now and then
// there is a burst, or the program gets other processors. All completions of the round must
// be delivered.
func TestNothingIsLostWhenConsumersPollNowAndThen(t *testing.T) {
	rounds := 600
	if testing.Short() {
		rounds = 60
	}
	for i, cfg := range []Config{{}, {SpinRounds: -1}, {SpinRounds: 5}} {
		procs := []int{1, 2, 4}
		ok := t.Run(fmt.Sprint(i), func(t *testing.T) {
			defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(2))
			dev, to := newPolled(), newCollector()
			engine, log := newEngine(t, dev, cfg, perQueue{to})
			cqs := []*polledCQ{attach(t, engine, newDispatcher(t), 64), attach(t, engine, newDispatcher(t), 64)}
			var sent [2]int
			rng := rand.New(rand.NewPCG(4, uint64(i)))
			for range rounds {
				if rng.IntN(20) == 0 {
					goruntime.GOMAXPROCS(procs[rng.IntN(len(procs))])
				}
				which := rng.IntN(2)
				n := 1 + rng.IntN(3)
				var wg sync.WaitGroup
				for range rng.IntN(3) {
					polls, leaves := rng.IntN(50), rng.IntN(2) == 0
					wg.Go(func() {
						for range polls {
							pollAs(engine, delivery.PollNow)
							goruntime.Gosched()
						}
						if leaves {
							pollAs(engine, delivery.PollBeforeSleep)
						}
					})
				}
				if rng.IntN(20) == 0 {
					n += 60 // a burst
				}
				for range n {
					cqs[which].complete(wcs(sent[which], 1)...)
					sent[which]++
				}
				to.requireAll(t, sent[0]+sent[1])
				wg.Wait()
			}
			assert.Empty(t, log.kinds())
		})
		if !ok {
			return
		}
	}
}

// Close comes while a consumer delivers. It waits for the consumer, and no goroutine
// polls afterwards.
func TestCloseWaitsForAConsumerThatPolls(t *testing.T) {
	dev := newPolled()
	in, out := make(chan struct{}), make(chan struct{})
	engine := undriven(t, dev, completeFunc(func([]hw.WC) {
		close(in)
		<-out
	}))
	close(engine.driver.done)
	attach(t, engine, nil, 8).complete(wcs(0, 1)...)
	polled, closed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(polled)
		pollAs(engine, delivery.PollNow)
	}()
	<-in
	go func() { closed <- engine.Close() }()
	require.Eventually(t, engine.driver.stopping.Load, time.Minute, time.Millisecond)
	for range 1000 {
		goruntime.Gosched()
	}
	assert.Empty(t, closed, "closed under a consumer's hands")
	close(out)
	require.NoError(t, <-closed)
	<-polled
	polls := dev.polls.Load()
	pollAs(engine, delivery.PollNow)
	pollAs(engine, delivery.PollBeforeSleep)
	assert.Equal(t, polls, dev.polls.Load())
}

func TestAConsumersPollAllocatesNothing(t *testing.T) {
	d := newDispatcher(t)
	engine := undriven(t, newPolled(), completeFunc(func(wcs []hw.WC) {
		for i := range wcs {
			wiring(d).Main().PutSuccess(new(delivery.Lane), nil, wcs[i].ID, hw.OpRecv, 0)
		}
		wiring(d).Main().Flush()
	}))
	cq := attach(t, engine, d, 64)
	buf := make([]event.Event, 8)
	store := make([]hw.WC, 0, 64)
	for i := range 8 {
		store = append(store, hw.WC{ID: uint64(i), CQ: cq.cfg.Tag})
	}
	got := 0
	allocs := testing.AllocsPerRun(100, func() {
		wiring(d).Main().Reserve(8)
		cq.wcs = store
		n, _ := d.Dequeue(buf)
		m, _ := d.Dequeue(buf)
		got += n + m
	})
	assert.Zero(t, allocs)
	assert.Equal(t, 8*101, got)
}
