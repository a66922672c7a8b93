package main

import (
	"runtime"
	"sync"
	"sync/atomic"

	dat "godat/runtime"
)

const (
	posters = 2
	ahead   = 100 // requests that each may have outstanding
)

// twoPosters is a request of 64 bytes, posted by one of two goroutines to the same
// endpoint; the caller dequeues.
func twoPosters(r *rig) contestant {
	buf := make([]dat.Event, 32)
	from, to := r.lmr.Segment(0, messageSize), r.lmr.Remote(half, messageSize)
	return contestant{"two posters on one endpoint", func(n int) {
		var taken [posters]atomic.Int64
		var wg sync.WaitGroup
		for i := range taken {
			wg.Go(func() {
				for posted := range int64(share(n, i)) {
					for posted-taken[i].Load() >= ahead {
						runtime.Gosched()
					}
					check(r.a.PostRDMAWrite(uint64(i), 0, to, from))
				}
			})
		}
		for left := n; left > 0; {
			m := must(r.da.Dequeue(buf[:min(left, len(buf))]))
			var by [posters]int64
			for i := range buf[:m] {
				check(buf[i].Status.Err())
				by[buf[i].Cookie]++
			}
			for i := range by {
				if by[i] > 0 {
					taken[i].Add(by[i])
				}
			}
			if left -= m; m == 0 {
				runtime.Gosched()
			}
		}
		wg.Wait()
	}}
}

// twoSenders is an event that one of two goroutines sends on a channel; the caller
// receives.
func twoSenders() contestant {
	return contestant{"two senders on one channel", func(n int) {
		ch := make(chan [7]uint64, 256)
		var wg sync.WaitGroup
		for i := range posters {
			wg.Go(func() {
				for range share(n, i) {
					ch <- [7]uint64{}
				}
			})
		}
		for range n {
			<-ch
		}
		wg.Wait()
	}}
}

// share is how many of n requests poster i posts.
func share(n, i int) int { return (n + i) / posters }

// posterTargets needs two processors: with one, the posters take turns.
func posterTargets(r *rig, c contest) []target {
	if c.procs < posters {
		return nil
	}
	got := c.run(twoSenders(), twoPosters(r))
	return []target{{"T11", "two posters on one endpoint / two senders on a raw channel", got.ratio(got.names[1], got.names[0]), false, 2.0}}
}
