package evd

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/hw/event"
)

// No wake-up is lost: the waiter that takes the trigger looks at all dispatchers,
// and a later event sets the trigger again.
func TestEveryEventIsFoundThroughTheCNO(t *testing.T) {
	const dispatchers, waiters, each = 3, 2, 500
	atEach(t, func(t *testing.T) {
		c := newCNO(t, CNOConfig{})
		var ds []*Dispatcher
		for range dispatchers {
			ds = append(ds, newDispatcher(t, Config{CNO: c, QLen: 4}))
		}
		found := make(chan int, 1<<16)
		var wg sync.WaitGroup
		for range waiters {
			wg.Go(func() {
				buf := make([]event.Event, 3)
				for {
					if _, err := c.Wait(background); err != nil {
						return
					}
					for _, d := range ds {
						for {
							n, err := d.Dequeue(buf)
							if err != nil || n == 0 {
								break
							}
							found <- n
						}
					}
				}
			})
		}
		// Each producer puts its next event when consumers have found all events so
		// far.
		for round := range uint64(each) {
			var puts sync.WaitGroup
			for i, d := range ds {
				puts.Go(func() {
					// One event that notifies among silent ones, which fill gaps
					// before it.
					for j := range 3 {
						q := d.inner.Main()
						for !q.Reserve(1) {
							runtime.Gosched()
						}
						ev := dto(round)
						if j != i {
							ev = silenced(ev)
						}
						puts.Go(func() {
							q.Put(ev)
							q.Flush()
						})
					}
				})
			}
			puts.Wait()
			for _, d := range ds {
				d.Flush() // the silent events that came last
			}
			for n := 0; n < 3*dispatchers; {
				select {
				case k := <-found:
					n += k
				case <-time.After(time.Minute):
					t.Fatalf("round %d: a wake-up was lost", round)
				}
			}
		}
		c.abort()
		wg.Wait()
	})
}

// Only an event that notifies triggers the CNO, and the consumer finds it each
// time, though silent events were claimed before it and published after it.
func TestNoTriggerIsLostInAGap(t *testing.T) {
	const producers, rounds = 4, 1000
	atEach(t, func(t *testing.T) {
		c := newCNO(t, CNOConfig{})
		d := newDispatcher(t, Config{CNO: c, QLen: 2 * producers})
		loud := make(chan uint64, producers)
		var waiting sync.WaitGroup
		waiting.Go(func() {
			buf := make([]event.Event, 4)
			for {
				if _, err := c.Wait(background); err != nil {
					return
				}
				for {
					n, err := d.Dequeue(buf)
					if err != nil || n == 0 {
						break
					}
					for _, ev := range buf[:n] {
						if ev.Flags&event.Silent == 0 {
							loud <- ev.Cookie
						}
					}
				}
			}
		})
		for round := range uint64(rounds) {
			var wg sync.WaitGroup
			for p := range uint64(producers) {
				ev := dto(round)
				if p != round%producers {
					ev.Flags = event.Silent
				}
				for !d.inner.Main().Reserve(1) {
					runtime.Gosched()
				}
				wg.Go(func() {
					d.inner.Main().Put(ev)
					d.inner.Main().Flush()
				})
			}
			select {
			case got := <-loud:
				require.Equal(t, round, got)
			case <-time.After(time.Minute):
				t.Fatalf("round %d: the trigger was lost", round)
			}
			wg.Wait()
		}
		c.abort()
		waiting.Wait()
	})
}
