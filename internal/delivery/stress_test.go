package delivery

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

// atEach runs f on one, two and eight processors.
func atEach(t *testing.T, f func(t *testing.T)) {
	for _, p := range []int{1, 2, 8} {
		t.Run(fmt.Sprintf("procs=%d", p), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(p))
			f(t)
		})
	}
}

// books counts the events that came, by producer, and demands that they are in
// order.
type books struct {
	mu   sync.Mutex
	next []uint64
	left int
	bad  string
	done chan struct{}
}

func newBooks(producers, each int) *books {
	return &books{next: make([]uint64, producers), left: producers * each, done: make(chan struct{})}
}

// enter counts events. If several consumers call enter, each event comes once but
// their order is lost, so then only the counts are kept.
func (b *books) enter(evs []event.Event, ordered bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ev := range evs {
		p, n := ev.Cookie>>32, ev.Cookie&0xffffffff
		if ordered && n != b.next[p] && b.bad == "" {
			b.bad = fmt.Sprintf("producer %d: event %d, want %d", p, n, b.next[p])
		}
		b.next[p]++
		if b.left--; b.left == 0 {
			close(b.done)
		}
	}
}

func (b *books) await(t *testing.T) {
	t.Helper()
	select {
	case <-b.done:
	case <-time.After(time.Minute):
		b.mu.Lock()
		t.Fatalf("%d events are missing: a wake-up was lost", b.left)
	}
	assert.Empty(t, b.bad)
}

// produce puts n events: alone or together, silent, notifying or failed. The last
// one notifies. produce gives some reservations back.
func produce(q *Queue, producer uint64, n int, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, producer))
	var lane Lane
	evs := make([]event.Event, 0, 8)
	for i := 0; i < n; i += len(evs) {
		evs = evs[:0]
		for k := 1 + rnd.IntN(min(8, n-i)); len(evs) < k; {
			ev := event.Event{Number: event.DTOCompletion, Cookie: producer<<32 | uint64(i+len(evs))}
			if rnd.IntN(2) == 0 {
				ev.Flags = event.Silent
			}
			if rnd.IntN(16) == 0 {
				ev.Status = hw.StatusFlushed
			}
			evs = append(evs, ev)
		}
		if i+len(evs) == n {
			evs[len(evs)-1].Flags = 0
		}
		for !q.Reserve(len(evs) + 1) {
			runtime.Gosched()
		}
		if rnd.IntN(2) == 0 {
			q.PutAll(evs)
		} else {
			for j := range evs {
				if ev := &evs[j]; ev.Flags == 0 && ev.Status == hw.StatusSuccess {
					succeed(q, &lane, nil, ev.Cookie, ev.Op, 0)
				} else {
					q.Put(ev)
				}
			}
		}
		q.Release(1)
		q.Flush()
	}
}

func TestEveryEventArrivesOnceAndInOrder(t *testing.T) {
	const producers, each, qlen = 4, 2000, 24
	for name, tc := range map[string]struct {
		mode      *Way
		consumers int
		consume   func(d *Dispatcher, b *books)
	}{
		"dequeue":         {Ring, 1, func(d *Dispatcher, b *books) { dequeueUntil(d, b, true) }},
		"several dequeue": {Ring, 3, func(d *Dispatcher, b *books) { dequeueUntil(d, b, false) }},
		"wait":            {Ring, 1, waitUntilAborted},
		"iterate": {Ring, 1, func(d *Dispatcher, b *books) {
			for ev := range d.Events(background) {
				b.enter([]event.Event{ev}, true)
			}
		}},
		"several iterate": {Ring, 3, func(d *Dispatcher, b *books) {
			for ev := range d.Events(background) {
				b.enter([]event.Event{ev}, false)
			}
		}},
		"channel": {Channel, 1, func(d *Dispatcher, b *books) {
			for ev := range d.C() {
				b.enter([]event.Event{ev}, true)
			}
		}},
		"batch": {Batches, 1, func(d *Dispatcher, b *books) {
			for batch := range d.Batches() {
				b.enter(batch.Events(), true)
				batch.Release()
			}
		}},
		"callback": {Callback, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			atEach(t, func(t *testing.T) {
				b := newBooks(producers, each)
				d := newDispatcher(t, Config{
					Way: tc.mode, QLen: qlen, BatchMax: 5,
					Callback: func(evs []event.Event) { b.enter(evs, true) },
				})
				var consuming, producing sync.WaitGroup
				for range tc.consumers {
					consuming.Go(func() { tc.consume(d, b) })
				}
				for p := range uint64(producers) {
					producing.Go(func() { produce(d.Main(), p, each, 1) })
				}
				producing.Wait()
				b.await(t)
				d.Abort()
				consuming.Wait()
				for p := range b.next {
					require.EqualValues(t, each, b.next[p])
				}
			})
		})
	}
}

func dequeueUntil(d *Dispatcher, b *books, ordered bool) {
	buf := make([]event.Event, 7)
	for {
		n, err := d.Dequeue(buf)
		if err != nil {
			return
		}
		b.enter(buf[:n], ordered)
		if n == 0 {
			runtime.Gosched()
		}
	}
}

func waitUntilAborted(d *Dispatcher, b *books) {
	for {
		ev, _, err := waitOne(d, background, 1)
		if err != nil {
			return
		}
		b.enter([]event.Event{ev}, true)
	}
}

// The channel is made as short as the limit, because its spare room would hide a
// reservation too many.
func TestNoReservationIsGrantedTwice(t *testing.T) {
	const limit, posters, each = 4, 6, 15000
	atEach(t, func(t *testing.T) {
		d := newDispatcher(t, Config{Way: Channel})
		q := d.Main()
		q.places.limit.Store(limit)
		q.channel.ch = make(chan event.Event, limit)
		var (
			wg     sync.WaitGroup
			failed atomic.Bool
		)
		for p := range posters {
			wg.Go(func() {
				var lane Lane
				if p%2 == 0 {
					lane.enter(q, nil)
				}
				own := lane.n
				for i := range uint64(each) {
					for !q.Reserve(1) {
						if failed.Load() {
							return
						}
						runtime.Gosched()
					}
					if i%3 == 0 {
						q.Release(1)
						continue
					}
					var at uint64
					if own != nil {
						at = own.begin()
					}
					select {
					case q.channel.ch <- event.Event{Cookie: i}:
					default:
						failed.Store(true)
						return
					}
					if own != nil {
						own.end(at)
					} else {
						q.sent()
					}
				}
			})
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range q.channel.ch {
			}
		}()
		wg.Wait()
		require.False(t, failed.Load(), "a reserved event has no place")
		q.shut()
		<-done
	})
}

// Posters race with Close: either side may come first, but every granted
// reservation is used, and then the channel closes, once.
func TestCloseRacesWithPosters(t *testing.T) {
	atEach(t, func(t *testing.T) {
		for _, mode := range []*Way{Channel, Batches} {
			for range 60 {
				d := newDispatcher(t, Config{Way: mode, QLen: 64})
				route := newRoute(t, d, 1, 1, 64)
				var wg sync.WaitGroup
				granted := make([]int, 3)
				for p := range granted {
					wg.Go(func() {
						var lane Lane
						for i := range uint64(20) {
							q := d.For(i)
							if !q.Reserve(1) {
								continue
							}
							if i%5 == 0 {
								q.Release(1)
								continue
							}
							granted[p]++
							if i%3 == 0 {
								q.Put(silenced(dto(i)))
							} else {
								succeed(q, &lane, nil, i, hw.OpSend, 0)
							}
							q.Flush()
						}
					})
				}
				wg.Go(func() { assert.NoError(t, d.Close()) })
				got := 0
				for range d.Events(background) {
					got++
				}
				for range route.C() {
					got++
				}
				wg.Wait()
				want := 0
				for _, n := range granted {
					want += n
				}
				require.Equal(t, want, got, mode)
			}
		}
	})
}
