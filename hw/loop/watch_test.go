package loop

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func TestASendThatFindsNoReceiveFailsInTime(t *testing.T) {
	for _, limit := range []time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second, time.Minute} {
		t.Run(limit.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := pair(t, func(cfg *hw.QPConfig) { cfg.NotReady = limit })
				time.Sleep(3 * time.Second)
				start := time.Now()
				a.post(send(1), send(2))
				time.Sleep(limit - 1)
				synctest.Wait()
				assert.Empty(t, a.sends.all(), "it waits as long as it may")
				for len(a.sends.all()) == 0 {
					time.Sleep(time.Millisecond)
				}
				synctest.Wait()
				slack := 2*max(minTick, min(maxTick, limit/8)) + time.Millisecond
				assert.LessOrEqual(t, time.Since(start), limit+slack)
				assert.Equal(t, []hw.WC{
					{ID: 1, Op: hw.OpSend, Status: hw.StatusReceiverNotReady},
					{ID: 2, Op: hw.OpSend, Status: hw.StatusFlushed},
				}, a.sends.all())
				assert.Equal(t, hw.ReasonBroken, a.facts.isDown())
				assert.Equal(t, hw.ReasonBroken, b.facts.isDown())
			})
		})
	}
}

// Each send has its own time: sends that waited before it do not shorten it, and sends
// posted behind it do not lengthen it.
func TestEverySendWaitsItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = time.Second
		a, b := pair(t, func(cfg *hw.QPConfig) { cfg.NotReady = limit })
		for id := range uint64(5) {
			a.post(send(id))
			time.Sleep(limit * 9 / 10)
			b.recv(id)
		}
		assert.Len(t, a.sends.all(), 5)
		a.post(send(10))
		for id := uint64(11); len(a.sends.all()) == 5; id++ {
			require.Less(t, id, uint64(40), "posting behind it keeps it waiting")
			time.Sleep(limit / 10)
			if a.facts.isDown() == 0 {
				a.post(send(id))
			}
		}
		assert.Equal(t, hw.StatusReceiverNotReady, a.sends.all()[5].Status)
	})
}

func TestTheWatchServesManyWaitsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := open(t, uniqueName())
		limits := []time.Duration{time.Minute, time.Second, 4 * time.Millisecond, 100 * time.Millisecond}
		var asides []*side
		for _, limit := range limits {
			a := newSide(t, dev, func(cfg *hw.QPConfig) { cfg.NotReady = limit })
			b := newSide(t, dev, nil)
			connect(t, a, b)
			a.post(send(1))
			asides = append(asides, a)
			time.Sleep(time.Millisecond)
		}
		start := time.Now()
		for _, i := range []int{2, 3, 1, 0} {
			for len(asides[i].sends.all()) == 0 {
				time.Sleep(time.Millisecond)
			}
			assert.InEpsilon(t, limits[i]+8*time.Millisecond, time.Since(start)+8*time.Millisecond, 0.5, limits[i])
		}
	})
}

// A watch with nothing to do sets no timer: in a bubble the clock would run on.
func TestAnIdleWatchSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, func(cfg *hw.QPConfig) { cfg.NotReady = time.Second })
		a.post(send(1))
		b.recv(1)
		time.Sleep(time.Minute)
		w := a.dev.(*device).watch
		w.mu.Lock()
		defer w.mu.Unlock()
		assert.Nil(t, w.list)
		assert.Zero(t, w.tick)
		assert.False(t, a.qp.(*queuePair).out.Load().watched.listed.Load())
	})
}

// The watch decides that a send's time is up, but sets the expired bit only after that
// send has found its receive after all and the next send waits.
func TestAnExpiryThatComesLateDoesNotFailTheNextSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t, func(cfg *hw.QPConfig) { cfg.NotReady = time.Hour })
		a.post(send(1), send(2))
		w, p := a.dev.(*device).watch, a.qp.(*queuePair).out.Load()
		w.mu.Lock()
		require.Same(t, p, w.list)
		w.list = nil
		w.mu.Unlock()
		p.expiredAt.Store(p.stalledAt.Load())
		b.recv(1)
		assert.Len(t, a.sends.all(), 1)
		w.expire(p)
		assert.Len(t, a.sends.all(), 1, "the second has just begun to wait")
		b.recv(2)
		for i, wc := range a.sends.wait(2) {
			assert.Equal(t, hw.StatusSuccess, wc.Status, "send %d", i+1)
		}
	})
}

// A receive comes just as the send's time runs out: either the send succeeds, or it
// fails and the receive is flushed.
func TestAReceiveThatComesAsTheTimeRunsOutIsTakenOrFlushed(t *testing.T) {
	dev := open(t, uniqueName())
	for range 50 {
		a := newSide(t, dev, func(cfg *hw.QPConfig) { cfg.NotReady = time.Millisecond })
		b := newSide(t, dev, nil)
		connect(t, a, b)
		p := a.qp.(*queuePair).out.Load()
		a.post(send(1))
		spinUntil(t, func() bool {
			return p.attention.Load()&expired != 0 || p.stalledAt.Load() == p.expiredAt.Load() && p.attention.Load()&broken != 0 || !p.watched.listed.Load()
		})
		b.recv(1)
		sent, got := a.sends.wait(1)[0], b.recvs.wait(1)[0]
		if sent.Status == hw.StatusSuccess {
			assert.Equal(t, hw.StatusSuccess, got.Status)
			a.post(hw.SendWR{ID: 2, Op: hw.OpWrite, Flags: hw.WRSignaled})
			a.sends.wait(2)
			assert.Zero(t, p.attention.Load()&^uint32(expired), "nothing lingers")
		} else {
			assert.Equal(t, hw.StatusReceiverNotReady, sent.Status)
			assert.Equal(t, hw.StatusFlushed, got.Status)
		}
	}
}

// A receive that the program would have posted while this process was paused is not late: what a
// late look finds says nothing of the receiver, which ran as little as the watch did.
func TestAPauseOfTheProcessDoesNotCountForASendThatWaits(t *testing.T) {
	const limit, pause = 10 * time.Second, time.Hour
	type look struct{ due, late time.Duration } // due behind the look before
	for name, c := range map[string]struct {
		looks []look
		over  int // the look at which the time is up, counted from 0
	}{
		"no pause":                {[]look{{}, {maxTick, 0}, {limit - maxTick, 0}}, 2},
		"a pause":                 {[]look{{}, {maxTick, 0}, {maxTick, pause}, {limit - maxTick, 0}}, 3},
		"pauses":                  {[]look{{}, {maxTick, 0}, {maxTick, pause}, {maxTick, pause}, {limit - maxTick - 1, 0}, {1, 0}}, 5},
		"just before its time":    {[]look{{}, {limit - 1, 0}, {maxTick, pause}, {1, 0}}, 3},
		"a look that comes a bit": {[]look{{}, {limit - 1, 0}, {maxTick, leastLate}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _ := pair(t, func(cfg *hw.QPConfig) { cfg.NotReady = limit })
				a.post(send(1))
				dev, p := a.dev.(*device).watch, a.qp.(*queuePair).out.Load()
				synctest.Wait()
				dev.mu.Lock()
				require.Same(t, p, dev.list)
				dev.list = nil
				dev.mu.Unlock()
				p.watched.seenAt = never
				own, now := &watch{list: p}, time.Duration(0) // its looks are the test's
				for i, l := range c.looks {
					own.tick, now = l.due, now+l.due+l.late
					own.look(now)
					synctest.Wait()
					require.Equal(t, i == c.over, len(a.sends.all()) > 0, "look %d", i)
				}
				assert.Equal(t, hw.StatusReceiverNotReady, a.sends.all()[0].Status)
			})
		})
	}
}
