package load

import (
	"math"
	"sync"
	"time"

	"godat/bench/host"
)

// Cost is what the benchmark itself adds.
type Cost struct {
	Clock  float64 `json:"clock"`  // one reading of the clock, in nanoseconds; each message has two
	Record float64 `json:"record"` // putting one latency into the histogram, in nanoseconds
}

// OwnCost measures what the benchmark itself adds to each message.
func OwnCost() Cost {
	h := newHistogram()
	return Cost{
		Clock:  clockCost(),
		Record: least(func(n int) { record(h.RecordValue, n) }),
	}
}

func record(f func(int64) error, n int) {
	for i := range n {
		_ = f(int64(100 + i%100))
	}
}

func clockCost() float64 {
	return least(func(n int) {
		base := time.Now()
		for range n {
			_ = time.Since(base) < 0
		}
	})
}

// threadClockCost is how long one reading of a thread's clock takes.
var threadClockCost = sync.OnceValue(func() time.Duration {
	return time.Duration(least(func(n int) {
		for range n {
			_, _ = host.ThreadTime()
		}
	}))
})

// least is the least time of one of n operations in nanoseconds, over a few tries.
func least(f func(n int)) float64 {
	const n = 20000
	best := time.Duration(math.MaxInt64)
	for range 10 {
		start := time.Now()
		f(n)
		best = min(best, time.Since(start))
	}
	return float64(best) / n
}
