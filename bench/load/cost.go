package load

import (
	"math"
	"sync"
	"time"

	"godat/bench/host"
)

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
