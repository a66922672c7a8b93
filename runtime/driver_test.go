package runtime

import (
	"context"
	"math/rand/v2"
	goruntime "runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
	"godat/hw/sim"
	"godat/internal/owner"
	"godat/internal/yield"
)

// perQueue hands a batch on queue by queue.
type perQueue struct{ to completer }

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

// delivery puts completions into dispatchers, by their queues, and says who did.
type delivery struct {
	to map[uint32]*evd.Dispatcher // by tag
	by uint64                     // the goroutine
}

func (d *delivery) Complete(wcs []hw.WC) {
	d.by = owner.GoroutineID()
	for _, wc := range wcs {
		q := d.to[wc.CQ].Main()
		q.PutCompletion(nil, wc.ID, hw.StatusSuccess, hw.OpRecv, 0, 0)
		q.Flush()
	}
}

// undriven is a pool whose queues consumers poll, and nobody in their stead.
func undriven(t testing.TB, dev hw.Polled, to completer) *cqPool {
	t.Helper()
	pool := newCQPool(dev, hw.Attr{MaxCQDepth: 1 << 16}, PollerConfig{ConsumerPolls: true}, nil)
	pool.to, pool.driver.to = to, to
	return pool
}

// dispatcherOf makes a dispatcher with room reserved, and a queue of its own.
func dispatcherOf(t testing.TB, pool *cqPool, to *delivery, cfg evd.Config) (*evd.Dispatcher, *polledCQ) {
	t.Helper()
	d, err := evd.New(cfg)
	require.NoError(t, err)
	require.True(t, d.Main().Reserve(cfg.QLen))
	cq := attach(t, pool, d, cfg.QLen)
	if to.to == nil {
		to.to = make(map[uint32]*evd.Dispatcher)
	}
	to.to[cq.cfg.Tag] = d
	return d, cq
}

func TestADequeueDeliversWhatTheDeviceHas(t *testing.T) {
	dev, to := newPolled(), new(delivery)
	pool := undriven(t, dev, to)
	own, cq := dispatcherOf(t, pool, to, evd.Config{QLen: 8})
	other, otherCQ := dispatcherOf(t, pool, to, evd.Config{QLen: 8, Mode: evd.ModeChannel})
	buf := make([]Event, 8)
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
	assert.Equal(t, owner.GoroutineID(), to.by, "nobody else had a hand in it")
	for i := range 2 {
		assert.EqualValues(t, 20+i, (<-other.C()).Cookie, "others are fed as well")
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
	assert.Equal(t, polls, dev.polls.Load(), "who finds something does not poll")

	pool.Detach(cq, 8)
	_, err = own.Dequeue(buf)
	require.NoError(t, err)
	assert.Equal(t, polls, dev.polls.Load(), "without a queue on the device it has nothing to look for")
}

func TestAWaitLooksOnceItself(t *testing.T) {
	dev, to := newPolled(), new(delivery)
	pool := undriven(t, dev, to)
	d, cq := dispatcherOf(t, pool, to, evd.Config{QLen: 8})
	cq.complete(wcs(1, 2)...)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	ev, nmore, err := d.Wait(over, 1)
	require.NoError(t, err, "it was there before the time was over")
	assert.EqualValues(t, 1, ev.Cookie)
	assert.Equal(t, 1, nmore)
	assert.Equal(t, owner.GoroutineID(), to.by)
}

// Whoever has the token delivers, and nobody else polls meanwhile or waits for it.
func TestOneConsumerPollsAtATime(t *testing.T) {
	dev := newPolled()
	var pool *cqPool
	calls := 0
	pool = undriven(t, dev, completeFunc(func([]hw.WC) {
		calls++
		polls := dev.polls.Load()
		pool.stir(evd.LookNow) // as others would
		pool.stir(evd.LookAndLeave)
		assert.Equal(t, polls, dev.polls.Load())
	}))
	cq := attach(t, pool, nil, 8)
	cq.complete(wcs(0, 1)...)
	pool.stir(evd.LookNow)
	cq.complete(wcs(1, 1)...)
	pool.stir(evd.LookNow)
	assert.Equal(t, 2, calls)
}

// A poll may leave to the next one what no event tells of.
func TestWhoTakesCompletionsEndsTheBackStopsWait(t *testing.T) {
	dev := newPolled()
	pool := undriven(t, dev, completeFunc(func([]hw.WC) {}))
	cq := attach(t, pool, nil, 8)
	woken := func() bool { w := dev.woken; dev.woken = false; return w }
	require.True(t, woken(), "by the new queue")
	for _, how := range []evd.Look{evd.LookNow, evd.LookAndLeave} {
		pool.driver.asleep.Store(true)
		pool.stir(how)
		assert.False(t, woken(), "nothing came")
		cq.complete(wcs(0, 1)...)
		pool.stir(how)
		assert.True(t, woken())
		assert.False(t, pool.driver.asleep.Load())
		cq.complete(wcs(1, 1)...)
		pool.stir(how)
		assert.False(t, woken(), "it is awake")
	}
	pool.driver.asleep.Store(true)
	polls := dev.polls.Load()
	pool.stir(evd.LookElsewhere)
	assert.True(t, woken())
	assert.Equal(t, polls, dev.polls.Load(), "a poster does not poll")
}

// All times are the bubble's: the back-stop is exactly where it is expected.
func TestTheBackStopKeepsAwayFromConsumersWhoPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev, to := newPolled(), newCollector()
		pool, _ := newTestPool(t, dev, PollerConfig{SpinRounds: -1, ConsumerPolls: true}, to)
		cq := attach(t, pool, nil, 64)
		synctest.Wait()
		require.True(t, dev.asleep())
		sent := 0
		complete := func() {
			cq.complete(wcs(sent, 1)...)
			sent++
		}
		complete()
		synctest.Wait()
		to.requireAll(t, sent) // nobody has polled, so it does
		for round := range 3 {
			pool.stir(evd.LookNow)
			complete()
			pool.stir(evd.LookNow)
			synctest.Wait()
			require.False(t, dev.asleep(), "it was woken by what came, and leaves the device to us")
			arms, polls := dev.arms.Load(), dev.polls.Load()
			for range 10 {
				time.Sleep(lookPeriod / 2)
				complete()
				pool.stir(evd.LookNow)
				polls++
			}
			to.requireAll(t, sent)
			require.Equal(t, arms, dev.arms.Load())
			require.Equal(t, polls, dev.polls.Load(), "round %d: nobody else polls", round)

			complete()
			time.Sleep(2 * lookPeriod)
			synctest.Wait()
			to.requireAll(t, sent)
			require.True(t, dev.asleep(), "it took over")
			require.Greater(t, dev.arms.Load(), arms)
		}
		pool.Detach(cq, 64)
	})
}

func TestWhoLeavesPutsTheBackStopInCharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev, to := newPolled(), newCollector()
		pool, _ := newTestPool(t, dev, PollerConfig{SpinRounds: -1, ConsumerPolls: true}, to)
		cq := attach(t, pool, nil, 64)
		synctest.Wait()
		began := time.Now()
		for sent := 1; sent <= 6; {
			if sent%2 == 0 { // from a nap
				pool.stir(evd.LookNow)
				cq.complete(wcs(sent-1, 1)...)
				sent++
				pool.stir(evd.LookNow)
				synctest.Wait()
				require.False(t, dev.asleep())
			} else { // from a wait
				pool.stir(evd.LookNow)
			}
			pool.stir(evd.LookAndLeave)
			synctest.Wait()
			require.True(t, dev.asleep())
			cq.complete(wcs(sent-1, 1)...)
			synctest.Wait()
			to.requireAll(t, sent)
			sent++
		}
		assert.Zero(t, time.Since(began), "it took no period")
		pool.Detach(cq, 64)
	})
}

// A Dequeue on a dispatcher with a CNO does not say that there will be another.
func TestADequeueForACNOLeavesTheDevice(t *testing.T) {
	dev, to := newPolled(), new(delivery)
	pool := undriven(t, dev, to)
	d, cq := dispatcherOf(t, pool, to, evd.Config{QLen: 8})
	c, err := evd.NewCNO(evd.CNOConfig{})
	require.NoError(t, err)
	require.NoError(t, d.ModifyCNO(c))
	cq.complete(wcs(0, 1)...)
	buf := make([]Event, 8)
	n, err := d.Dequeue(buf)
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.False(t, pool.driver.driven.Load())
	require.NoError(t, d.Disable())
	_, err = d.Dequeue(buf)
	require.NoError(t, err)
	assert.True(t, pool.driver.driven.Load())
}

// The back-stop goes to sleep, and a consumer takes what came, or leaves, at each
// moment of that. Wait would block only where it is woken by what comes next.
func TestTheBackStopFallsAsleepAmongConsumers(t *testing.T) {
	for _, how := range []evd.Look{evd.LookNow, evd.LookAndLeave} {
		yield.Interleave(func() (first, second, check func()) {
			dev := &drowsy{polled: newPolled()}
			total := 0
			pool := undriven(t, dev, completeFunc(func(wcs []hw.WC) { total += len(wcs) }))
			cq := attach(t, pool, nil, 8)
			dev.woken = false
			drv := pool.driver
			first = func() {
				drv.driven.Store(false)
				drv.sleep()
			}
			second = func() {
				dev.whisper(cq)
				pool.stir(how)
			}
			check = func() {
				assert.False(t, drv.asleep.Load())
				if total == 1 && dev.blocked {
					assert.True(t, dev.late, "it waits with something taken that it did not hear of")
				}
				assert.Equal(t, how == evd.LookNow, drv.driven.Load())
			}
			return first, second, check
		})
	}
}

func TestTheBackStopLooksAgainBeforeItWaits(t *testing.T) {
	dev := &drowsy{polled: newPolled()}
	total := 0
	pool := undriven(t, dev, completeFunc(func(wcs []hw.WC) { total += len(wcs) }))
	cq := attach(t, pool, nil, 8)
	dev.woken = false
	dev.whisper(cq) // since it last looked
	pool.driver.sleep()
	assert.Equal(t, 1, total)
	assert.False(t, dev.blocked)
}

// drowsy is a device whose Wait only notes that it would have blocked, and whether
// that was before anything was there.
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

// whisper puts in a completion that wakes nobody.
func (d *drowsy) whisper(cq *polledCQ) {
	d.whispered = true
	cq.wcs = append(cq.wcs, hw.WC{})
}

// Rounds in which consumers poll, wait for others to, or all do something else. In each
// the completions have to come.
func TestNothingIsLostWhenConsumersPollNowAndThen(t *testing.T) {
	for _, procs := range []int{1, 2, 4} {
		ok := t.Run("", func(t *testing.T) {
			defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(procs))
			dev, to := newPolled(), newCollector()
			pool, log := newTestPool(t, dev, PollerConfig{SpinRounds: -1, ConsumerPolls: true}, perQueue{to})
			cqs := []*polledCQ{attach(t, pool, newDispatcher(t), 64), attach(t, pool, newDispatcher(t), 64)}
			var sent [2]int
			rng := rand.New(rand.NewPCG(4, uint64(procs)))
			for range 600 {
				which := rng.IntN(2)
				n := 1 + rng.IntN(3)
				var wg sync.WaitGroup
				for range rng.IntN(3) {
					polls, leaves := rng.IntN(20), rng.IntN(2) == 0
					wg.Go(func() {
						for range polls {
							pool.stir(evd.LookNow)
							goruntime.Gosched()
						}
						if leaves {
							pool.stir(evd.LookAndLeave)
						}
					})
				}
				cqs[which].complete(wcs(sent[which], n)...)
				sent[which] += n
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

// A consumer has completions in hand when the device is closed: that waits for it, and
// nobody polls afterwards.
func TestClosingWaitsForWhoeverPolls(t *testing.T) {
	dev := newPolled()
	in, out := make(chan struct{}), make(chan struct{})
	pool := undriven(t, dev, completeFunc(func([]hw.WC) {
		close(in)
		<-out
	}))
	close(pool.driver.done)
	attach(t, pool, nil, 8).complete(wcs(0, 1)...)
	polled, closed := make(chan struct{}), make(chan error, 1)
	go func() {
		defer close(polled)
		pool.stir(evd.LookNow)
	}()
	<-in
	go func() { closed <- pool.close() }()
	require.Eventually(t, pool.driver.stopping.Load, 10*time.Second, time.Millisecond)
	for range 1000 {
		goruntime.Gosched()
	}
	assert.Empty(t, closed, "closed under a consumer's hands")
	close(out)
	require.NoError(t, <-closed)
	<-polled
	polls := dev.polls.Load()
	pool.stir(evd.LookNow)
	pool.stir(evd.LookAndLeave)
	assert.Equal(t, polls, dev.polls.Load())
}

func TestAnAdapterClosesUnderConsumersWhoPoll(t *testing.T) {
	for seed := range uint64(20) {
		s := sim.New(sim.Config{Seed: seed})
		ia := open(t, "sim", WithProvider(s), WithPoller(PollerConfig{ConsumerPolls: true}))
		p := connect(t, ia, polledQueue(64))
		p.establish(t)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				var buf [4]Event
				var err error
				for err == nil {
					_, err = p.events.Dequeue(buf[:])
					goruntime.Gosched()
				}
				assert.ErrorIs(t, err, hw.ErrInvalidHandle)
			})
		}
		for i := range 8 {
			require.NoError(t, p.b.PostRecv(uint64(i), Default, p.mem.Segment(0, 8)))
			require.NoError(t, p.a.PostSend(uint64(100+i), Default, p.mem.Segment(0, 8)))
		}
		require.NoError(t, ia.Close())
		wg.Wait()
		assert.Empty(t, s.Violations())
	}
}

func TestAConsumersPollAllocatesNothing(t *testing.T) {
	d := newDispatcher(t)
	pool := undriven(t, newPolled(), completeFunc(func(wcs []hw.WC) {
		for i := range wcs {
			d.Main().PutCompletion(nil, wcs[i].ID, hw.StatusSuccess, hw.OpRecv, 0, 0)
		}
		d.Main().Flush()
	}))
	cq := attach(t, pool, d, 64)
	buf := make([]Event, 8)
	store := make([]hw.WC, 0, 64)
	for i := range 8 {
		store = append(store, hw.WC{ID: uint64(i), CQ: cq.cfg.Tag})
	}
	got := 0
	allocs := testing.AllocsPerRun(100, func() {
		d.Main().Reserve(8)
		cq.wcs = store
		n, _ := d.Dequeue(buf)
		m, _ := d.Dequeue(buf)
		got += n + m
	})
	assert.Zero(t, allocs)
	assert.Equal(t, 8*101, got)
}
