package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"godat/bench/stats"
)

// allocTargets counts the allocations of each way of delivery. They don't depend on the
// number of processors.
func allocTargets(c contest) (list []target) {
	if c.procs > 1 {
		return nil
	}
	f := newField()
	defer f.close()
	for _, x := range []contestant{pairPoll(f.queue), pairBatch(f.queue), pairWait(f.queue), pairChannel(f.channel), pairBatches(f.batches), pairOneShot(f.channel), pairConn(f.conn)} {
		list = append(list, target{"T7", "allocations: " + x.name, exactly(float64(allocations(x))), false, 0})
	}
	return list
}

// allocations is how many allocations an operation has. What others in the process
// allocate now and then is less than one for each.
func allocations(x contestant) uint64 {
	const n = 1000
	x.run(n)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	x.run(n)
	runtime.ReadMemStats(&after)
	return (after.Mallocs - before.Mallocs) / n
}

// The instructions of a pair, and how many of them lock a cache line, as
// instructions.sh has recorded them. CI checks them, within 2 %.
//
//go:embed instructions.txt
var recordedInstructions string

// mostInstructions are the bounds of T1: 3 % above what a pair took when they were set. They
// stand here and not in instructions.txt, so that a count which is recorded anew moves none.
var mostInstructions = map[string]float64{"poll": 1529, "poll16": 880, "chan": 2181, "conn": 2212}

// instructionTargets are the recorded counts. Some have a bound.
func instructionTargets(c contest) (list []target) {
	if c.procs > 1 {
		return nil
	}
	for line := range strings.Lines(recordedInstructions) {
		var mode string
		var all, locked float64
		must(fmt.Sscan(line, &mode, &all, &locked))
		if most, ok := mostInstructions[mode]; ok {
			list = append(list, target{"T1", "instructions of a pair, " + mode, exactly(all), false, most})
		}
		list = append(
			list,
			target{"T8", "instructions of a pair, " + mode, exactly(all), false, none},
			target{"T8", "instructions of a pair that lock a cache line, " + mode, exactly(locked), false, none},
		)
	}
	return list
}

// pinnedTargets runs the benchmark of the pinned poller, which is inside the library, by
// go test. They are measured with two processors. Where that is not possible, nothing is told.
func pinnedTargets(c contest) []target {
	if c.procs < 2 {
		return nil
	}
	cmd := exec.Command("go", "test", "-run=^$", "-bench=^BenchmarkPinned$",
		fmt.Sprintf("-benchtime=%dx", c.fewest()), fmt.Sprintf("-count=%d", min(c.repeats, 6)), "godat/runtime/internal/polling")
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	said, err := cmd.CombinedOutput()
	if err != nil {
		why := fmt.Sprintf("the pinned poller could not be measured: %v: %s", err, lastLine(string(said)))
		return []target{{"T9", why, stats.Of(nil), true, 30}}
	}
	p50, p99 := pinnedFigures(string(said), "p50-ns"), pinnedFigures(string(said), "p99-ns")
	return []target{
		{"T9", "a completion every 200 µs: a naive send from a locked thread / the poller's channel, median", ratios(p50["naive"], p50["pinned"]), true, 30},
		{"T9", "the poller's channel / a send from no locked thread, 99th percentile", ratios(p99["pinned"], p99["unlocked"]), false, 10},
	}
}

// pinnedFigures are the figures of a unit, by path, in the output of BenchmarkPinned.
func pinnedFigures(output, unit string) map[string][]float64 {
	figures := map[string][]float64{}
	for line := range strings.Lines(output) {
		name, rest, _ := strings.Cut(line, "\t")
		_, path, ok := strings.Cut(name, "/path=")
		if !ok {
			continue
		}
		path, _, _ = strings.Cut(strings.TrimSpace(path), "-")
		fields := strings.Fields(rest)
		for i := 1; i < len(fields); i++ {
			if fields[i] == unit {
				figures[path] = append(figures[path], must(strconv.ParseFloat(fields[i-1], 64)))
			}
		}
	}
	return figures
}

// ratios estimates a / b from as many repeats as both have.
func ratios(a, b []float64) stats.Estimate {
	var list []float64
	for i := range min(len(a), len(b)) {
		list = append(list, a[i]/b[i])
	}
	return stats.Of(list)
}
