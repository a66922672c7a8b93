package main

import (
	"os/exec"
	"runtime"
	"slices"
	"time"

	"godat/bench/stats"
	dat "godat/runtime"
)

// besideTargets compares round trips over channels beside one busy process for each
// processor with the same alone. There are none where no shell is.
func besideTargets(c contest) (list []target) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		return nil
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.procs))
	for _, over := range []struct {
		ia    string
		bound float64
	}{{"loop", 1.5}, {"iwarp:127.0.0.1", 2}} {
		r := newRigOn(over.ia, nil, dat.DispatcherConfig{Mode: dat.ModeChannel}, false)
		n := max(c.fewest(), calibrate(tripChannel(r), c.slice))
		var median, tail []float64
		for range c.repeats {
			quiet := tripTimes(r, n)
			end := keepBusy(sh, runtime.NumCPU())
			loud := tripTimes(r, n)
			end()
			median = append(median, float64(loud[n/2])/float64(quiet[n/2]))
			tail = append(tail, float64(loud[n*99/100])/float64(quiet[n*99/100]))
		}
		r.close()
		what := "round trip by channel over " + over.ia + " beside busy processes / alone, "
		list = append(
			list,
			target{"T15", what + "median", stats.Of(median), false, over.bound},
			target{"T15", what + "99th percentile", stats.Of(tail), false, 10},
		)
	}
	return list
}

// tripTimes makes n round trips over channels, and returns their times in ascending
// order.
func tripTimes(r *rig, n int) (took []time.Duration) {
	trip(r, "", func(d *dat.Dispatcher) func() dat.Event {
		next := receiving(d)
		if d != r.da {
			return next
		}
		last := time.Now()
		return func() dat.Event {
			ev := next()
			now := time.Now()
			took = append(took, now.Sub(last))
			last = now
			return ev
		}
	}).run(n)
	slices.Sort(took)
	return took
}

// keepBusy starts n processes that never rest, and returns the function that ends them.
func keepBusy(sh string, n int) (end func()) {
	var all []*exec.Cmd
	for range n {
		cmd := exec.Command(sh, "-c", "while :; do :; done")
		check(cmd.Start())
		all = append(all, cmd)
	}
	return func() {
		for _, cmd := range all {
			check(cmd.Process.Kill())
			_ = cmd.Wait() // says that it was killed
		}
	}
}
