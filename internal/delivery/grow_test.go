package delivery

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/internal/yield"
)

func TestEventsQueuedBeforeADispatcherGrowsComeFirst(t *testing.T) {
	d := newDispatcher(t, Config{QLen: 3})
	put(t, d.Main(), 1, 2, 3)
	require.NoError(t, d.Resize(5))
	put(t, d.Main(), 4, 5)
	require.False(t, d.Main().Reserve(1))
	ev, nmore, err := waitOne(d, background, 5)
	require.NoError(t, err)
	assert.EqualValues(t, 1, ev.Cookie)
	assert.Equal(t, 4, nmore)
	require.NoError(t, d.Resize(9))
	put(t, d.Main(), 6, 7, 8, 9, 10)
	require.False(t, d.Main().Reserve(1))
	assert.Equal(t, list(2, 3, 4, 5, 6, 7, 8, 9, 10), drain(t, d))
	put(t, d.Main(), 11)
	assert.Equal(t, list(11), drain(t, d))
}

// At any point of one producer, another producer puts an event, the dispatcher
// grows, and the other producer puts a second event. A consumer that looks then
// does not get the second event before the first, which may lie behind an event
// that is not published yet.
func TestAnEventIsNotOvertakenInALongerRing(t *testing.T) {
	for name, look := range map[string]func(d *Dispatcher) []uint64{
		"no consumer looks": func(*Dispatcher) []uint64 { return nil },
		"a Dequeue": func(d *Dispatcher) []uint64 {
			buf := make([]event.Event, 4)
			n, _ := d.Dequeue(buf)
			return cookies(buf[:n])
		},
		"a Wait": func(d *Dispatcher) []uint64 {
			ctx, cancel := context.WithCancel(background)
			cancel()
			if ev, _, err := waitOne(d, ctx, 1); err == nil {
				return list(ev.Cookie)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			yield.Interleave(func() (first, second, check func()) {
				d := newDispatcher(t, Config{QLen: 3})
				q := d.Main()
				require.True(t, q.Reserve(3))
				var got []uint64
				return func() {
						q.Put(dto(101))
						q.Flush()
					}, func() {
						q.Put(dto(1))
						require.NoError(t, d.Resize(100))
						q.Put(dto(2))
						got = append(got, look(d)...)
					}, func() {
						got = append(got, drain(t, d)...)
						require.ElementsMatch(t, list(1, 2, 101), got)
						assert.Less(t, slices.Index(got, 1), slices.Index(got, 2))
					}
			})
		})
	}
}

func TestEveryEventArrivesInOrderThoughTheDispatcherGrows(t *testing.T) {
	const producers, each = 4, 3000
	for _, mode := range []*Way{Ring, Callback} {
		t.Run(mode.String(), func(t *testing.T) {
			var next [producers]uint64
			done := make(chan struct{})
			total := 0
			take := func(evs []event.Event) {
				for _, ev := range evs {
					p := ev.Cookie >> 32
					assert.Equal(t, next[p], ev.Cookie&0xffffffff)
					next[p]++
					if total++; total == producers*each {
						close(done)
					}
				}
			}
			d := newDispatcher(t, Config{Way: mode, QLen: producers, Callback: take})
			var wg sync.WaitGroup
			for p := range uint64(producers) {
				wg.Go(func() {
					for i := range uint64(each) {
						for !d.Main().Reserve(1) {
							runtime.Gosched()
						}
						d.Main().Put(dto(p<<32 | i))
						d.Main().Flush()
					}
				})
			}
			wg.Go(func() {
				for qlen := producers; qlen <= 1<<10; qlen *= 2 {
					assert.NoError(t, d.Resize(qlen))
					for range 20 {
						if mode == Callback {
							runtime.Gosched()
							continue
						}
						assert.Equal(t, qlen, d.QLen())
					}
				}
			})
			ctx, cancel := context.WithTimeout(background, 2*time.Minute)
			defer cancel()
			if mode == Ring {
				for range producers * each {
					ev, _, err := waitOne(d, ctx, 1)
					require.NoError(t, err)
					take([]event.Event{ev})
				}
			} else {
				select {
				case <-done:
				case <-ctx.Done():
					t.Fatal("events are missing")
				}
			}
			wg.Wait()
		})
	}
}
