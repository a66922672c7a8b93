package stream

import (
	"math"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw/event"
	"godat/internal/delivery"
	"godat/internal/door"
)

func newWaiter() *waiter { return &waiter{wake: make(chan struct{}, 1)} }

func TestAWaitEndsAtTheDeadlineThatWasSetLast(t *testing.T) {
	for name, c := range map[string]struct {
		set  []time.Duration // the deadlines, one after the other; 0 for none
		want time.Duration   // when the wait ends
	}{
		"one":                  {[]time.Duration{5 * time.Second}, 5 * time.Second},
		"in the past":          {[]time.Duration{-1}, 0},
		"moved away":           {[]time.Duration{2 * time.Second, 9 * time.Second}, 9 * time.Second},
		"moved near":           {[]time.Duration{20 * time.Second, 3 * time.Second}, 3 * time.Second},
		"taken away, then set": {[]time.Duration{2 * time.Second, 0, 7 * time.Second}, 7 * time.Second},
		"passed, then later":   {[]time.Duration{math.MinInt64, 4 * time.Second}, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, begin := newWaiter(), time.Now()
				for _, d := range c.set {
					at := begin.Add(d)
					if d == 0 {
						at = time.Time{}
					}
					w.setDeadline(at)
				}
				for !w.passed.Load() {
					w.wait(nil, w.passed.Load)
				}
				assert.Equal(t, c.want, time.Since(begin))
			})
		})
	}
}

func TestADeadlineThatIsTakenAwayEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiter()
		w.setDeadline(time.Now().Add(time.Second))
		w.setDeadline(time.Time{})
		time.Sleep(time.Hour)
		w.expire() // a timer that was stopped too late
		assert.False(t, w.passed.Load())
	})
}

// Two goroutines wait for each other in turns: a wake-up that is lost stops both.
func TestAWaiterMissesNoChange(t *testing.T) {
	const turns = 20_000
	var done atomic.Int64
	waiters := [2]*waiter{newWaiter(), newWaiter()}
	ended := make(chan struct{}, 2)
	for me := range int64(2) {
		go func() {
			for turn := me; turn < turns; turn += 2 {
				for done.Load() != turn {
					waiters[me].sleep(func() bool { return done.Load() == turn })
				}
				done.Store(turn + 1)
				waiters[1-me].notify()
			}
			ended <- struct{}{}
		}()
	}
	for range 2 {
		select {
		case <-ended:
		case <-time.After(time.Minute):
			t.Fatal("a wake-up was lost in turn ", done.Load())
		}
	}
}

func TestAWaiterLooksAsOftenAsThatHasHelped(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	w := newWaiter()
	looks := 0
	wait := func(readyAt int) bool {
		looks = 0
		return w.soon(nil, func() bool {
			looks++
			return looks == readyAt
		})
	}
	assert.False(t, wait(1), "a new one has no patience")
	assert.Zero(t, looks)
	for range 6 {
		assert.True(t, wait(1))
	}
	for _, most := range []int{16, 8, 4, 2, 1, 1} {
		assert.False(t, wait(-1))
		assert.Equal(t, most, looks)
	}
	assert.True(t, wait(1))
	assert.False(t, wait(-1))
	assert.Equal(t, 2, looks, "it was right once")
}

// Over TCP a call that waits reads the socket itself, however many processors there are.
func TestAWaiterAsksTheDevice(t *testing.T) {
	w, asked := newWaiter(), 0
	w.patience = 4
	events, err := evd.New(evd.Config{Mode: evd.ModeFunc, Func: func(event.Event) {}})
	require.NoError(t, err)
	events.Wiring(door.Key{}).Consumer().SetPollDevice(func(h delivery.PollHint) {
		assert.Equal(t, delivery.PollAgain, h)
		asked++
	})
	assert.True(t, w.soon(events, func() bool { return asked == 3 }))
	for provider, asks := range map[string]bool{"loop": false, "iwarp:127.0.0.1": true} {
		client, _ := newRig(t, provider, Config{}).pair()
		assert.Equal(t, asks, client.line.events.Asks(), provider)
	}
}

// The close of the adapter closes the dispatcher: a call that waits hears of it whether or
// not the connection has an event for it.
func TestADispatcherThatIsClosedEndsCalls(t *testing.T) {
	client, _ := newRig(t, "loop", Config{}).pair()
	read := write(func() error {
		_, err := client.Read(make([]byte, 1))
		return err
	})
	require.Eventually(t, client.line.reader.announced, time.Minute, time.Millisecond)
	client.line.events.Wiring(door.Key{}).Abort()
	require.ErrorIs(t, <-read, net.ErrClosed)
}
