package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"godat/bench/stats"
)

// contestant is a workload: run does n operations.
type contestant struct {
	name string
	run  func(n int)
}

// contest makes contestants take turns.
type contest struct {
	repeats int
	slice   time.Duration // length of one turn
	procs   int           // GOMAXPROCS
	quiet   *quiet        // counts the repeats that other programs disturbed; nil counts none
}

// byProcessors measures with one processor, whose figures are the steady ones, and with two.
func (c *command) byProcessors(measure func(contest)) {
	for procs := 1; procs <= min(2, runtime.NumCPU()); procs++ {
		began := time.Now()
		before := runtime.GOMAXPROCS(procs) // devices ask for the number when they are opened
		measure(contest{repeats: or(c.Repeats, 9), slice: or(c.Duration, 40*time.Millisecond), procs: procs})
		runtime.GOMAXPROCS(before)
		fmt.Fprintf(os.Stderr, "GOMAXPROCS=%d took %v\n", procs, time.Since(began).Round(time.Second))
	}
}

// result has the times of one operation of each contestant, one for each repeat.
type result struct {
	names []string
	perOp map[string][]time.Duration // one per repeat, in picoseconds
}

const pico = 1000 // a Duration counts nanoseconds; results need three more digits

func (c contest) run(list ...contestant) result {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.procs))
	r := result{perOp: make(map[string][]time.Duration)}
	counts := make([]int, len(list))
	for i, x := range list {
		r.names = append(r.names, x.name)
		counts[i] = calibrate(x, c.slice)
	}
	for range c.repeats {
		c.quiet.turn(func() {
			for i, x := range list {
				runtime.GC() // no contestant pays for another's garbage
				start := time.Now()
				x.run(counts[i])
				r.perOp[x.name] = append(r.perOp[x.name], time.Since(start)*pico/time.Duration(counts[i]))
			}
		})
	}
	return r
}

// calibrate warms the contestant up, and finds how many operations fill one turn. It
// begins with one, since an operation may move a megabyte, and takes the better of two
// times, since something may disturb one.
func calibrate(x contestant, slice time.Duration) int {
	for n := 1; ; n *= 4 {
		if took := min(timed(x, n), timed(x, n)); took > slice/8 {
			return max(1, int(float64(n)*float64(slice)/float64(took)))
		}
	}
}

func timed(x contestant, n int) time.Duration {
	start := time.Now()
	x.run(n)
	return time.Since(start)
}

// ratio estimates, over the repeats, a's time divided by b's in the same repeat.
// It leaves out the repeats in which something disturbed b, which took over twice its best time: they would make a look fast.
// Contestants of one repeat ran within the same second, so that a machine that becomes
// slower in the middle of a run changes both.
func (r result) ratio(a, b string) stats.Estimate {
	best := slices.Min(r.perOp[b])
	var values []float64
	for i, t := range r.perOp[b] {
		if t <= 2*best {
			values = append(values, float64(r.perOp[a][i])/float64(t))
		}
	}
	return stats.Of(values)
}

// ns estimates the time of one operation in nanoseconds.
func (r result) ns(name string) stats.Estimate {
	var values []float64
	for _, t := range r.perOp[name] {
		values = append(values, float64(t)/pico)
	}
	return stats.Of(values)
}
