package runtime

import (
	"fmt"
	goruntime "runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Goroutines that compute, one for each processor, are counted beside an adapter that is idle, and at once after that beside as
// many exchanges, each of which waits for its answer. Pieces of work are counted for each second that the process has of
// processors. Other programs still slow a processor down, now more, now less; so one turn of several is enough.
func TestAGoroutineThatComputesHasItsShareBesideAnExchange(t *testing.T) {
	const enough, turns = 0.75, 8
	for _, procs := range []int{1, 2} {
		t.Run(fmt.Sprintf("procs=%d", procs), func(t *testing.T) {
			defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(procs))
			onAll(t, func(t *testing.T, ia *IA) {
				var exchanges []func()
				for i := range procs {
					p := connected(t, ia, channel(256))
					exchanges = append(exchanges, func() { p.exchange(t, 1, uint64(i)) })
				}
				var share float64
				for turn := 0; turn < turns && share < enough; turn++ {
					alone := shareBeside(t, procs, nil)
					share = max(share, shareBeside(t, procs, exchanges)/alone)
				}
				assert.GreaterOrEqual(t, share, enough)
				t.Logf("%.2f of what they do alone", share)
			})
		})
	}
}

// compute is a piece of work of some microseconds.
func compute() (x uint32) {
	for i := range uint32(5000) {
		x = x*1664525 + i
	}
	return x
}

// shareBeside is how many pieces goroutines that compute, one for each processor, do in a second of processors, beside others.
func shareBeside(t *testing.T, procs int, others []func()) float64 {
	t.Helper()
	const window = 100 * time.Millisecond // of each processor: some time slices of the scheduler's
	var stop atomic.Bool
	var done atomic.Int64
	var sum atomic.Uint32 // so that the work is not left out
	var all sync.WaitGroup
	repeat := func(f func()) {
		all.Go(func() {
			for !stop.Load() {
				f()
			}
		})
	}
	began := processorTime(t)
	for _, other := range others {
		repeat(other)
	}
	for range procs {
		repeat(func() {
			sum.Add(compute())
			done.Add(1)
		})
	}
	require.Eventually(t, func() bool { return processorTime(t)-began > time.Duration(procs)*window }, time.Minute, time.Millisecond)
	n, took := done.Load(), processorTime(t)-began
	stop.Store(true)
	all.Wait()
	return float64(n) / took.Seconds()
}
