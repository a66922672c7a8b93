package delivery

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// In each round several goroutines put one event each, all silent but one. The
// waiter must wake for the one that notifies, even if a silent event in front of it
// is published later.
func TestNoWakeUpIsLostInAGap(t *testing.T) {
	const producers, rounds = 4, 3000
	for _, mode := range []*Way{Ring, Callback} {
		t.Run(mode.String(), func(t *testing.T) {
			atEach(t, func(t *testing.T) {
				loud := make(chan uint64, producers)
				d := newDispatcher(t, Config{Way: mode, QLen: 2 * producers, Callback: func(evs []event.Event) {
					for _, ev := range evs {
						if ev.Flags&event.Silent == 0 {
							loud <- ev.Cookie
						}
					}
				}})
				if mode == Ring {
					d.main.consumer.spins = 0
					var waiting sync.WaitGroup
					waiting.Go(func() {
						for ev := range d.Events(background) {
							if ev.Flags&event.Silent == 0 {
								loud <- ev.Cookie
							}
						}
					})
					defer waiting.Wait()
				}
				defer d.Abort()
				for round := range uint64(rounds) {
					var wg sync.WaitGroup
					for p := range uint64(producers) {
						ev := dto(round)
						if p != round%producers {
							ev.Flags = event.Silent
						}
						for !d.Main().Reserve(1) {
							runtime.Gosched()
						}
						wg.Go(func() {
							d.Main().Put(ev)
							d.Main().Flush()
						})
					}
					select {
					case got := <-loud:
						require.Equal(t, round, got)
					case <-time.After(time.Minute):
						t.Fatalf("round %d: the wake-up was lost", round)
					}
					wg.Wait()
				}
			})
		})
	}
}

// The waiter sleeps before each event, or is about to sleep.
func TestNoWakeUpIsLostAtTheEdgeOfSleep(t *testing.T) {
	const rounds = 4000
	atEach(t, func(t *testing.T) {
		there, back := newDispatcher(t, Config{QLen: 2}), newDispatcher(t, Config{QLen: 2})
		there.main.consumer.spins, back.main.consumer.spins = 0, 0
		var wg sync.WaitGroup
		wg.Go(func() {
			for ev := range there.Events(background) {
				if back.Main().Reserve(1) {
					back.Main().Put(&ev)
					back.Main().Flush()
				}
			}
		})
		done := make(chan string)
		wg.Go(func() {
			for i := range uint64(rounds) {
				there.Main().Reserve(1)
				there.Main().Put(dto(i))
				there.Main().Flush()
				ev, _, err := waitOne(back, background, 1)
				if err != nil || ev.Cookie != i {
					done <- fmt.Sprint(i, ev, err)
					return
				}
			}
			done <- ""
		})
		select {
		case what := <-done:
			assert.Empty(t, what)
		case <-time.After(time.Minute):
			t.Error("a wake-up was lost")
		}
		there.Abort()
		back.Abort()
		wg.Wait()
	})
}

// The event comes after a waiter's last look, and before the waiter announces that
// it is about to sleep.
func TestAWaiterLooksOnceMoreBeforeItSleeps(t *testing.T) {
	d := newDispatcher(t, Config{QLen: 1})
	c := d.Consumer()
	require.True(t, c.turn.acquire(turnWaiter))
	defer c.release()
	require.False(t, c.came(1))
	require.True(t, d.Main().Reserve(1))
	d.Main().Put(dto(1))
	d.Main().Flush()
	assert.True(t, c.park(1), "no producer wakes it for an event that was there before")
	c.unpark()
}

// Several producers together reach the threshold: each of them alone sees too few
// events.
func TestNoWakeUpIsLostAtAThreshold(t *testing.T) {
	const producers, rounds = 3, 2000
	atEach(t, func(t *testing.T) {
		d := newDispatcher(t, Config{QLen: producers})
		d.main.consumer.spins = 0
		woken := make(chan int)
		var waiting sync.WaitGroup
		waiting.Go(func() {
			buf := make([]event.Event, producers)
			for {
				_, nmore, err := waitOne(d, background, producers)
				if err != nil {
					return
				}
				n, err := d.Dequeue(buf)
				if err != nil {
					return
				}
				woken <- nmore*10 + n
			}
		})
		for round := range rounds {
			for range producers {
				eventually(t, "room", func() bool { return d.Main().Reserve(1) })
			}
			var wg sync.WaitGroup
			for p := range uint64(producers) {
				wg.Go(func() {
					d.Main().Put(dto(p))
					d.Main().Flush()
				})
			}
			select {
			case got := <-woken:
				require.Equal(t, (producers-1)*11, got)
			case <-time.After(time.Minute):
				t.Fatalf("round %d: the wake-up was lost", round)
			}
			wg.Wait()
		}
		d.Abort()
		waiting.Wait()
	})
}
