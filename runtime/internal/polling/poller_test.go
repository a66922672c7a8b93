package polling

import (
	"errors"
	"math/rand/v2"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/internal/yield"
)

// newTestEngine makes and starts an engine with a thread, which may run on any processor.
func newTestEngine(t testing.TB, dev hw.Polled, cfg Config, to Completer) (*Engine, *asyncLog) {
	t.Helper()
	log := new(asyncLog)
	return started(t, threaded(dev, cfg, log.report), to), log
}

// threaded is an engine whose thread may run on any processor.
func threaded(dev hw.Polled, cfg Config, report func(hw.AsyncEvent)) *Engine {
	engine := New(dev, 1<<16, cfg, report)
	engine.driver, engine.poller = nil, newPoller(dev, cfg, report)
	return engine
}

func started(t testing.TB, engine *Engine, to Completer) *Engine {
	t.Helper()
	require.NoError(t, engine.Start(to))
	t.Cleanup(func() { require.NoError(t, engine.Close()) })
	return engine
}

// newEngine makes and starts an engine of which consumers may get the device.
func newEngine(t testing.TB, dev hw.Polled, cfg Config, to Completer) (*Engine, *asyncLog) {
	t.Helper()
	log := new(asyncLog)
	return started(t, New(dev, 1<<16, cfg, log.report), to), log
}

func attach(t testing.TB, engine *Engine, d *evd.Dispatcher, entries int) *polledCQ {
	t.Helper()
	cq, err := engine.Attach(d, entries)
	require.NoError(t, err)
	return cq.(*polledCQ)
}

func newDispatcher(t testing.TB) *evd.Dispatcher {
	t.Helper()
	d, err := evd.New(evd.Config{QLen: 8})
	require.NoError(t, err)
	return d
}

func wcs(first, n int) []hw.WC {
	out := make([]hw.WC, n)
	for i := range out {
		out[i].ID = uint64(first + i)
	}
	return out
}

// The device completes in bursts, with pauses of all lengths between them, so that
// poller and deliverer are caught awake, about to sleep, and asleep. Each round waits
// for its completions: a completion without a wake-up makes it hang.
func TestNoWakeUpIsLost(t *testing.T) {
	for _, procs := range []int{1, 2, 4} {
		for _, spin := range []int{-1, 5} {
			ok := t.Run("", func(t *testing.T) {
				defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(procs))
				dev, to := newPolled(), newCollector()
				engine, log := newTestEngine(t, dev, Config{SpinRounds: spin}, to)
				cq := attach(t, engine, newDispatcher(t), 64)
				rng := rand.New(rand.NewPCG(1, uint64(procs)))
				sent, rounds := 0, 1500
				if testing.Short() {
					rounds = 150
				}
				for range rounds {
					n := 1 + rng.IntN(3)
					cq.complete(wcs(sent, n)...)
					sent += n
					to.requireAll(t, sent)
					for range rng.IntN(30) {
						goruntime.Gosched()
					}
				}
				assert.Empty(t, log.kinds())
				engine.Detach(cq, 64)
			})
			if !ok {
				return // another lost wake-up would take as long to be noticed
			}
		}
	}
}

// The poller pushes a completion at each moment between a deliverer's decision to park
// and its sleep, and the deliverer parks at each moment of a push.
func TestADelivererThatParksMissesNoPush(t *testing.T) {
	for _, pushFirst := range []bool{false, true} {
		yield.Interleave(func() (first, second, check func()) {
			w, err := newWaker()
			require.NoError(t, err)
			d := newDeliverer(nil, nil, new(poller), w, nil)
			b := &cqBinding{depth: 8}
			b.carryTo(d)
			d.add(b)
			waits := false
			push := func() { b.push(wcs(0, 1)) }
			park := func() { waits = d.announcePark() }
			check = func() {
				defer func() { require.NoError(t, w.close()) }()
				assert.True(t, d.pending())
				if waits {
					assert.Zero(t, d.parked.Load(), "the deliverer sleeps, and nobody wakes it")
				}
			}
			if pushFirst {
				return push, park, check
			}
			return park, push, check
		})
	}
}

// Each queue keeps at most its depth outstanding, as queue pairs do: a delivery makes
// room for the next completion.
func TestCompletionsOfManyQueuesComeInOrderAndOnce(t *testing.T) {
	const queues, each, depth = 6, 3000, 100
	dev, to := newPolled(), newCollector()
	engine, log := newTestEngine(t, dev, Config{CQDepth: depth}, to)
	ds := []*evd.Dispatcher{newDispatcher(t), newDispatcher(t), nil}
	var wg sync.WaitGroup
	for i := range queues {
		cq := attach(t, engine, ds[i%len(ds)], depth)
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(2, uint64(i)))
			for sent := 0; sent < each; {
				n := min(1+rng.IntN(depth), each-sent)
				for sent+n-to.delivered(cq.cfg.Tag) > depth {
					goruntime.Gosched()
				}
				cq.complete(wcs(sent, n)...)
				sent += n
			}
		})
	}
	wg.Wait()
	to.requireAll(t, queues*each)
	assert.Empty(t, log.kinds())
	assert.Len(t, engine.deliverers, len(ds), "a dispatcher has one deliverer")
}

func (c *collector) delivered(tag uint32) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(c.next[tag])
}

func TestQueuesMayComeAndGoWhileThePollerRuns(t *testing.T) {
	dev, to := newPolled(), newCollector()
	to.reused = true
	engine, log := newTestEngine(t, dev, Config{}, to)
	shared := newDispatcher(t)
	var sent atomic.Int64
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for round := range 100 {
				d := shared
				if (round+i)%2 == 0 {
					d = newDispatcher(t)
				}
				// Each entry takes the whole depth, so that no two share a queue.
				cq := attach(t, engine, d, defaultCQDepth)
				to.restart(cq.cfg.Tag)
				cq.complete(wcs(0, 3)...)
				sent.Add(3)
				for to.delivered(cq.cfg.Tag) < 3 {
					goruntime.Gosched()
				}
				engine.Detach(cq, defaultCQDepth)
				assert.True(t, cq.closed)
			}
		})
	}
	wg.Wait()
	to.requireAll(t, int(sent.Load()))
	assert.Empty(t, log.kinds())
	engine.mu.Lock()
	defer engine.mu.Unlock()
	assert.Empty(t, engine.bindings)
	assert.Empty(t, engine.deliverers)
	assert.NotEmpty(t, engine.wakers)
	assert.LessOrEqual(t, len(engine.wakers), 40, "wakers pile up")
	assert.LessOrEqual(t, len(*engine.poller.bindings.Load()), 40, "tags pile up")
}

func (c *collector) restart(tag uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next[tag] = 0
}

func TestAQueueMadeWhileThePollerSleepsIsArmed(t *testing.T) {
	dev, to := newPolled(), newCollector()
	engine, _ := newTestEngine(t, dev, Config{}, to)
	for range 50 {
		require.Eventually(t, dev.asleep, time.Minute, 50*time.Microsecond)
		arms := dev.arms.Load()
		attach(t, engine, newDispatcher(t), 8)
		require.Eventually(t, func() bool { return dev.arms.Load() > arms && dev.asleep() },
			10*time.Second, 50*time.Microsecond)
	}
}

func TestAnIdlePollerAndItsDeliverersSleep(t *testing.T) {
	dev, to := newPolled(), newCollector()
	engine, _ := newTestEngine(t, dev, Config{SpinRounds: 10}, to)
	cq := attach(t, engine, nil, 8)
	cq.complete(wcs(0, 1)...)
	to.requireAll(t, 1)
	f := engine.deliverers[nil]
	require.Eventually(t, func() bool { return dev.asleep() && f.parked.Load() == 1 }, time.Minute, time.Millisecond)
	polls := dev.polls.Load()
	for range 1000 {
		goruntime.Gosched()
	}
	assert.Equal(t, polls, dev.polls.Load())
	assert.EqualValues(t, 1, f.parked.Load())
}

func TestTheDelivererFedLastStaysAwakeWithASpinningPoller(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(4)) // one for the poller
	dev, to := newPolled(), newCollector()
	engine, _ := newTestEngine(t, dev, Config{SpinRounds: noBound}, to)
	first, second := newDispatcher(t), newDispatcher(t)
	a, b := attach(t, engine, first, 8), attach(t, engine, second, 8)
	a.complete(wcs(0, 1)...)
	to.requireAll(t, 1)
	b.complete(wcs(0, 1)...)
	to.requireAll(t, 2)
	last := engine.deliverers[second]
	require.Eventually(t, func() bool { return engine.deliverers[first].parked.Load() == 1 }, time.Minute, time.Millisecond)
	for range 1000 {
		goruntime.Gosched()
		require.Zero(t, last.parked.Load())
	}
	engine.Detach(a, 8)
	engine.Detach(b, 8)
}

func TestQueuePairsShareAQueueAsLongAsThereIsRoom(t *testing.T) {
	dev := newPolled()
	engine, _ := newTestEngine(t, dev, Config{CQDepth: 100}, newCollector())
	a, b := newDispatcher(t), newDispatcher(t)
	first := attach(t, engine, a, 60)
	assert.Same(t, first, attach(t, engine, a, 40), "there is room for 40 more")
	second := attach(t, engine, a, 1)
	assert.NotSame(t, first, second, "the first queue is full")
	assert.Same(t, second, attach(t, engine, a, 99))
	other := attach(t, engine, b, 1)
	assert.NotSame(t, second, other, "two dispatchers share a queue")
	deep := attach(t, engine, b, 5000)
	assert.Equal(t, 5000, deep.Depth())
	assert.Equal(t, 100, other.Depth())

	engine.Detach(first, 60)
	assert.False(t, first.closed)
	assert.Same(t, first, attach(t, engine, a, 50), "the room that came back is not used")
	engine.Detach(first, 40)
	engine.Detach(first, 50)
	assert.True(t, first.closed)
	require.Panics(t, func() { engine.Detach(first, 1) })
	require.Panics(t, func() { engine.Detach(second, 101) })

	_, err := engine.Attach(a, 1<<16+1)
	require.ErrorIs(t, err, hw.ErrInsufficientResources)
	_, err = engine.Attach(a, 0)
	require.ErrorIs(t, err, hw.ErrInsufficientResources)
	require.NoError(t, engine.Close())
	_, err = engine.Attach(a, 1)
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	require.NoError(t, engine.Close(), "a second close has nothing to do")
}

func TestADeviceThatMakesNoQueueLeavesNothing(t *testing.T) {
	dev, to := newPolled(), newCollector()
	engine, _ := newTestEngine(t, dev, Config{}, to)
	dev.cqErr = syscall.ENOMEM
	for range 3 {
		_, err := engine.Attach(newDispatcher(t), 1)
		require.ErrorIs(t, err, syscall.ENOMEM)
	}
	assert.Empty(t, engine.bindings)
	assert.Empty(t, engine.deliverers)
	dev.cqErr = nil
	attach(t, engine, nil, 8).complete(wcs(0, 5)...)
	to.requireAll(t, 5)
}

// A deliverer may close the last queue pair of its own dispatcher.
func TestDetachMayComeFromTheDeliverer(t *testing.T) {
	dev := newPolled()
	var engine *Engine
	var cq *polledCQ
	done := make(chan struct{})
	engine, _ = newTestEngine(t, dev, Config{}, completeFunc(func([]hw.WC) {
		engine.Detach(cq, 8)
		close(done)
	}))
	cq = attach(t, engine, nil, 8)
	cq.complete(wcs(0, 1)...)
	<-done
	require.NoError(t, engine.Close())
}

type completeFunc func([]hw.WC)

func (f completeFunc) Complete(wcs []hw.WC) { f(wcs) }

func TestMoreCompletionsThanTheQueueHoldsAreReported(t *testing.T) {
	dev, to := newPolled(), newCollector()
	gate := make(chan struct{})
	to.pause = func() { <-gate }
	engine, log := newTestEngine(t, dev, Config{CQDepth: 8}, to)
	cq := attach(t, engine, nil, 8)
	for i := range 8 {
		cq.complete(wcs(64*i, 64)...) // into a ring of 8+32 places that no deliverer empties
	}
	require.Eventually(t, dev.asleep, time.Minute, time.Millisecond)
	close(gate)
	require.Eventually(t, func() bool { return len(log.kinds()) > 0 }, time.Minute, time.Millisecond)
	first := log.first() // there may be a second one
	assert.Equal(t, hw.AsyncCQOverrun, first.Kind)
	assert.Same(t, cq, first.CQ)
}

func TestADeviceThatCantWakeIsPolledNowAndThen(t *testing.T) {
	for _, make := range []func(testing.TB, hw.Polled, Config, Completer) (*Engine, *asyncLog){newEngine, newTestEngine} {
		dev, to := newPolled(), newCollector()
		engine, log := make(t, dev, Config{}, to)
		dev.mu.Lock()
		dev.armErr = errors.New("gone")
		dev.mu.Unlock()
		cq := attach(t, engine, nil, 8)
		require.Eventually(t, func() bool { return len(log.kinds()) > 0 }, time.Minute, time.Millisecond)
		for i := range 5 {
			cq.complete(wcs(i, 1)...)
			to.requireAll(t, i+1)
		}
		assert.Equal(t, []hw.AsyncKind{hw.AsyncDeviceFatal}, log.kinds(), "the error is reported once")
		assert.EqualError(t, log.first().Err, "gone")
	}
}

func TestClosingEndsThePollerWhateverItDoes(t *testing.T) {
	for i := range 50 {
		dev, to := newPolled(), newCollector()
		engine := threaded(dev, Config{SpinRounds: 3}, func(hw.AsyncEvent) {})
		require.NoError(t, engine.Start(to))
		cq := attach(t, engine, nil, 8)
		cq.complete(wcs(0, 3)...)
		for range i {
			goruntime.Gosched()
		}
		require.NoError(t, engine.Close())
		assert.True(t, cq.closed)
	}
}

func TestHandingOnAllocatesNothing(t *testing.T) {
	dev := newPolled()
	to := completeFunc(func([]hw.WC) {})
	w, err := newWaker()
	require.NoError(t, err)
	defer func() { require.NoError(t, w.close()) }()
	f := newDeliverer(to, nil, new(poller), w, nil)
	p := newPoller(dev, Config{}, nil)
	l := &cqBinding{depth: 64}
	l.carryTo(f)
	p.bindings.Store(&[]*cqBinding{l})
	f.add(l)
	batch := wcs(0, 64)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		p.distribute(batch)
		f.drain()
		f.parked.Store(1)
		p.distribute(batch[:1])
		w.wait()
		f.drain()
	}))
}
