package mem

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/internal/door"
	"godat/internal/yield"
)

// soon bounds waits that end at once unless something is wrong.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// onBothKinds runs a test for the buffers that are free, and for those that are set apart.
func onBothKinds(t *testing.T, cfg BufferPoolConfig, test func(t *testing.T, newPool func() *BufferPool, apart bool)) {
	for name, apart := range map[string]bool{"free": false, "set apart": true} {
		t.Run(name, func(t *testing.T) {
			test(t, func() *BufferPool {
				p := newTestPool(t, cfg)
				if apart {
					p.setApart(cfg.Count)
				}
				return p
			}, apart)
		})
	}
}

// waiting waits until n calls wait.
func waiting(t *testing.T, w *waiters, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return int(w.n.Load()) == n }, time.Minute, time.Millisecond)
}

func TestCallsThatWaitGetBuffersInTheOrderInWhichTheyCame(t *testing.T) {
	for _, debug := range []bool{false, true} {
		onBothKinds(t, BufferPoolConfig{Count: 1, Size: 8, Debug: debug}, func(t *testing.T, newPool func() *BufferPool, apart bool) {
			p, ctx := newPool(), soon(t)
			b, err := p.Wait(ctx)
			require.NoError(t, err, "one is free")
			b.Resize(8)
			order := make(chan int, 3)
			var calls sync.WaitGroup
			for i := range 3 {
				calls.Go(func() {
					b, err := p.Wait(ctx)
					if assert.NoError(t, err) {
						assert.Empty(t, b.Bytes())
						order <- i
						b.Put()
					}
				})
				waiting(t, p.those(apart), i+1)
			}
			b.Put()
			calls.Wait()
			for i := range 3 {
				assert.Equal(t, i, <-order)
			}
			require.NotNil(t, p.get(apart), "the last one gave it back")
		})
	}
}

func TestAnOperationThatEndsServesACallThatWaits(t *testing.T) {
	p := newTestPool(t, BufferPoolConfig{Count: 1, Size: 8})
	var tags [1]uint64
	require.Equal(t, 1, Own{p}.LendAll(0, tags[:]))
	got := make(chan *Buffer)
	go func() {
		b, _ := p.Wait(soon(t))
		got <- b
	}()
	waiting(t, &p.waiters, 1)
	b := p.At(0)
	require.True(t, Own{}.PutBack(b, tags[0]))
	assert.Same(t, b, <-got)
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	p := newTestPool(t, BufferPoolConfig{Count: 1, Size: 8})
	b := p.Get()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error)
	go func() {
		_, err := p.Wait(ctx)
		ended <- err
	}()
	waiting(t, &p.waiters, 1)
	cancel(why)
	require.ErrorIs(t, <-ended, why)
	b.Put()
	require.Same(t, b, p.Get(), "nobody waits for it")
	_, err := p.Wait(nil) //nolint:staticcheck // that is the point
	requireCode(t, err, hw.InvalidParameter, hw.Arg1)
}

func TestTheEndOfAPoolEndsWaits(t *testing.T) {
	for name, end := range map[string]func(d *Domain, p *BufferPool) error{
		"its own":       func(_ *Domain, p *BufferPool) error { return p.Close() },
		"its adapter's": func(d *Domain, _ *BufferPool) error { return d.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			d := NewDomain(door.Key{}, newFakeDevice(), nil)
			pz, err := d.NewPZ()
			require.NoError(t, err)
			p, err := pz.NewBufferPool(BufferPoolConfig{Count: 1, Size: 8})
			require.NoError(t, err)
			b := p.Get()
			ended := make(chan error, 2)
			for range 2 {
				go func() {
					_, err := p.Wait(soon(t))
					ended <- err
				}()
			}
			waiting(t, &p.waiters, 2)
			require.NoError(t, end(d, p))
			for range 2 {
				requireCode(t, <-ended, hw.InvalidHandle, hw.HandleLMR)
			}
			b.Put()
			_, err = p.Wait(soon(t))
			requireCode(t, err, hw.InvalidHandle, hw.HandleLMR)
			_, err = (*BufferPool)(nil).Wait(soon(t))
			requireCode(t, err, hw.InvalidHandle, hw.HandleLMR)
			require.NoError(t, d.Close())
		})
	}
}

// A call that begins to wait while a buffer comes back, or while the pool ends, misses
// neither.
func TestNoCallWaitsWhileABufferIsFree(t *testing.T) {
	for name, end := range map[string]func(b *Buffer, p *BufferPool){
		"put":   func(b *Buffer, _ *BufferPool) { b.Put() },
		"close": func(_ *Buffer, p *BufferPool) { assert.NoError(t, p.Close()) },
	} {
		for _, waitsFirst := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				onBothKinds(t, BufferPoolConfig{Count: 1, Size: 8}, func(t *testing.T, newPool func() *BufferPool, apart bool) {
					yield.Interleave(func() (first, second, check func()) {
						p := newPool()
						b := p.get(apart)
						var w waiter
						first, second = func() { w = p.queueUp(apart) }, func() { end(b, p) }
						if !waitsFirst {
							first, second = second, first
						}
						return first, second, func() { require.Len(t, w, 1) }
					})
				})
			})
		}
	}
}

// Two calls that give up while a buffer comes back leave it to others.
func TestACallThatGivesUpLeavesTheBufferToOthers(t *testing.T) {
	yield.Interleave(func() (first, second, check func()) {
		p := newTestPool(t, BufferPoolConfig{Count: 1, Size: 8})
		b := p.Get()
		gone, removed := p.queueUp(false), false
		var w waiter
		second = func() {
			removed = p.waiters.remove(gone)
			w = p.queueUp(false)
		}
		return b.Put, second, func() {
			if removed {
				require.Len(t, w, 1)
			} else {
				require.Len(t, gone, 1)
			}
		}
	})
}

// A call that gives up may leave a buffer to nobody, while another call begins to wait.
func TestACallThatBeginsToWaitGetsWhatAnotherLeftWhenItGaveUp(t *testing.T) {
	yield.InterleaveTwo(func() (first, second, third, check func()) {
		p := newTestPool(t, BufferPoolConfig{Count: 1, Size: 8})
		b := p.Get()
		gone, left := p.queueUp(false), false
		var w waiter
		second = func() { left = p.waiters.remove(gone) }
		third = func() { w = p.queueUp(false) }
		return b.Put, second, third, func() {
			if left {
				require.Len(t, w, 1)
			} else {
				require.Len(t, gone, 1)
			}
		}
	})
}

func TestManyCallsWaitForFewBuffers(t *testing.T) {
	const buffers, goroutines, rounds = 2, 8, 500
	p, ctx := newTestPool(t, BufferPoolConfig{Count: buffers, Size: 8}), soon(t)
	var holders atomic.Int32
	var calls sync.WaitGroup
	for i := range goroutines {
		calls.Go(func() {
			for round := range rounds {
				within, cancel := context.WithCancel(ctx)
				if (i+round)%4 == 0 {
					cancel()
				}
				b, err := p.Wait(within)
				cancel()
				if err != nil {
					if !assert.ErrorIs(t, err, context.Canceled) {
						return
					}
					continue
				}
				assert.LessOrEqual(t, holders.Add(1), int32(buffers))
				holders.Add(-1)
				b.Put()
			}
		})
	}
	calls.Wait()
	for range buffers {
		require.NotNil(t, p.Get())
	}
}
