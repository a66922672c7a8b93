package runtime

import (
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
)

// The tests of this file hold on each provider, whatever it is that notices what came.

// onAll runs a test on each provider; what it makes may be left.
func onAll(t *testing.T, test func(t *testing.T, ia *IA)) {
	for name, make := range providers {
		t.Run(name, func(t *testing.T) { test(t, make(t)) })
	}
}

// connected is a pair that is up.
func connected(t *testing.T, ia *IA, cfg evd.Config) *pair {
	t.Helper()
	p := connect(t, ia, cfg)
	p.establish(t)
	return p
}

// burst posts n messages, without taking an event.
func (p *pair) burst(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		require.NoError(t, p.b.PostRecv(uint64(i), hw.Default, p.mem.Segment(0, 8)))
	}
	for i := range n {
		require.NoError(t, p.a.PostSend(uint64(i), hw.Default, p.mem.Segment(8, 8)))
	}
}

// takeBurst takes the events of a burst of n messages.
func (p *pair) takeBurst(t *testing.T, n int) {
	t.Helper()
	for range 2 * n {
		ev := p.next(t)
		require.Equal(t, event.DTOCompletion, ev.Number)
		require.NoError(t, ev.Err())
	}
}

// others returns what exchanges messages on further connections, until all of them have come.
func others(t *testing.T, ia *IA) (exchange func()) {
	var pairs []*pair
	for _, cfg := range []evd.Config{channel(256), polledQueue(256), channel(256)} {
		pairs = append(pairs, connected(t, ia, cfg))
	}
	return func() {
		var all sync.WaitGroup
		for i, p := range pairs {
			all.Go(func() { p.exchange(t, 200, uint64(i)) })
		}
		all.Wait()
	}
}

const someMessages = 16

func TestAConsumerThatTakesNothingHoldsUpNobodyElse(t *testing.T) {
	onAll(t, func(t *testing.T, ia *IA) {
		exchange := others(t, ia)
		for _, cfg := range []evd.Config{channel(64), polledQueue(64)} {
			slow := connected(t, ia, cfg)
			slow.burst(t, someMessages)
			exchange()
			slow.takeBurst(t, someMessages)
		}
	})
}

// The consumer has been polling, and may have the device to itself, when it blocks.
func TestAConsumerThatPollsAndThenBlocksHoldsUpNobodyElse(t *testing.T) {
	onAll(t, func(t *testing.T, ia *IA) {
		exchange, slow := others(t, ia), connected(t, ia, polledQueue(64))
		for i := range 5 {
			slow.exchange(t, 100, uint64(i))
			slow.burst(t, someMessages)
			exchange()
			slow.takeBurst(t, someMessages)
		}
	})
}

func TestACallbackThatBlocksHoldsUpNobodyElse(t *testing.T) {
	onAll(t, func(t *testing.T, ia *IA) {
		exchange := others(t, ia)
		may, came := make(chan struct{}), make(chan event.Event, 64)
		slow := connect(t, ia, evd.Config{QLen: 64, Mode: evd.ModeCallback, Callback: func(all []event.Event) {
			for _, ev := range all {
				if ev.Number == event.DTOCompletion {
					<-may
				}
				came <- ev
			}
		}})
		for range 2 {
			require.Equal(t, event.Established, nextEvent(t, came).Number)
		}
		slow.burst(t, someMessages)
		exchange()
		close(may)
		for range 2 * someMessages {
			require.NoError(t, nextEvent(t, came).Err())
		}
	})
}

// A pause as long as a poll, a sleep, or a period of the library's own stands before each burst.
func TestEachBurstArrivesHoweverLongThePauseBeforeIt(t *testing.T) {
	onAll(t, func(t *testing.T, ia *IA) {
		pairs := []*pair{connected(t, ia, channel(256)), connected(t, ia, polledQueue(256))}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 100 {
			n := 1 + rng.IntN(someMessages)
			time.Sleep([]time.Duration{0, time.Microsecond, 50 * time.Microsecond, 3 * time.Millisecond}[rng.IntN(4)])
			for _, p := range pairs {
				p.burst(t, n)
			}
			for _, p := range pairs {
				p.takeBurst(t, n)
			}
		}
	})
}

func TestAllArrivesWhileTheProgramGetsOtherProcessors(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(0))
	onAll(t, func(t *testing.T, ia *IA) {
		var all sync.WaitGroup
		for i, cfg := range []evd.Config{channel(256), polledQueue(256), channel(256)} {
			p := connected(t, ia, cfg)
			all.Go(func() {
				for turn := range uint64(20) {
					p.exchange(t, 20, turn)
					goruntime.GOMAXPROCS(1 + (i+int(turn))%4)
				}
			})
		}
		all.Wait()
	})
}

// An idle adapter polls nothing, wakes nobody and takes no processor, however many connections it has.
func TestAnIdleAdapterNeitherPollsNorWakes(t *testing.T) {
	pairs := 500 // 1000 connections
	if testing.Short() {
		pairs = 20
	}
	onAll(t, func(t *testing.T, ia *IA) {
		for range pairs {
			_, client, server := both(t, ia, ConnConfig{Depth: 4, Message: 100})
			say(t, client, "something")
			hear(t, server)
		}
		polls := func() (c hw.PollCounts) {
			if s := ia.describePolls(); s != nil {
				c = s.PollCounts
			}
			return c
		}
		const window = 200 * time.Millisecond
		assert.Eventually(t, func() bool { // nothing in a window; what connecting has left is over then
			before, began := polls(), processorTime(t)
			time.Sleep(window)
			return processorTime(t)-began < window/200 && polls() == before
		}, time.Minute, time.Millisecond, "%v", polls())
	})
}
