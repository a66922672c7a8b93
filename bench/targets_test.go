package main

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/bench/stats"
	dat "godat/runtime"
)

// target is a figure, mostly a ratio, and its bound.
type target struct {
	id, what string
	got      stats.Estimate
	atLeast  bool // the bound is a lower one
	bound    float64
}

// none is the bound of a figure that is recorded, and no target.
const none = -1

func (t target) met() bool {
	if t.bound == none {
		return true
	}
	return t.atLeast && t.got.Median >= t.bound || !t.atLeast && t.got.Median <= t.bound
}

// told reports whether enough repeats were undisturbed to say whether the target is met.
func (t target) told() bool { return t.bound == none || t.got.Sure }

// exactly is a figure that is counted, and so has no spread.
func exactly(v float64) stats.Estimate {
	return stats.Estimate{Median: v, Low: v, High: v, Sure: true, Repeats: 1}
}

// gate measures targets with the contest's number of processors, for which there may be none.
type gate func(c contest) []target

// gates are the groups of targets that are measured together, by their names.
var gates = []struct {
	ids     []string
	measure gate
}{
	{[]string{"T4"}, pairTargets},
	{[]string{"T3", "T4"}, tripTargets},
	{[]string{"T7"}, allocTargets},
	{[]string{"T1", "T8"}, instructionTargets},
	{[]string{"T9"}, pinnedTargets},
	{[]string{"T10"}, bulkTargets},
	{[]string{"T12"}, bulkOverTCP},
	{[]string{"T13"}, tripsOverTCP},
	{[]string{"T15"}, besideTargets},
	{[]string{"T16"}, idleEndpointTargets},
	{[]string{"T16"}, idleConnTargets},
	{[]string{"T17"}, endingTargets},
	{[]string{"T18"}, scrapeTargets},
}

// T1 counts, and is met on any machine. The other targets are ratios of times, which mean
// something on a quiet machine alone, and so are measured if -targets names them:
//
//	go test ./bench -run '^TestTheTargetsAreMet$' -v -timeout 60m -targets all
//	go test ./bench -run '^TestTheTargetsAreMet$' -v -timeout 60m -targets T12,T13 -targets.runs 3
var (
	wantedTargets = flag.String("targets", "T1", "measure these targets, as in T12,T13; all of them if all")
	targetRuns    = flag.Int("targets.runs", 1, "how often the targets are measured; a target counts as met if all runs meet it")
	targetRepeats = flag.Int("targets.repeats", 9, "repeats of a run")
)

func TestTheTargetsAreMet(t *testing.T) {
	only := strings.Split(*wantedTargets, ",")
	if *wantedTargets == "all" {
		only = known()
	}
	for _, id := range only {
		require.Contains(t, known(), id, "-targets")
	}
	require.NoError(t, judge(&command{Repeats: *targetRepeats}, os.Stdout, *targetRuns, func(c contest) []target { return measureTargets(c, only...) }))
}

// known are the names of all targets.
func known() (list []string) {
	for _, g := range gates {
		list = append(list, g.ids...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// measureTargets measures the targets of these names.
func measureTargets(c contest, only ...string) (list []target) {
	wanted := func(id string) bool { return slices.Contains(only, id) }
	for _, g := range gates {
		if slices.ContainsFunc(g.ids, wanted) {
			list = append(list, g.measure(c)...)
		}
	}
	return slices.DeleteFunc(list, func(got target) bool { return !wanted(got.id) })
}

// pairTargets has one goroutine, and so one processor.
func pairTargets(c contest) []target {
	if c.procs > 1 {
		return nil
	}
	f := newField()
	defer f.close()
	const channel, conn = "pair, channel", "pair, Conn"
	r := c.run(f.pairs()...)
	return []target{{"T4", "pair over a Conn / pair over a channel on bare endpoints", r.ratio(conn, channel), false, 1.15}}
}

func tripTargets(c contest) (list []target) {
	f := newField()
	defer f.close()
	const poll, channel = "round trip, poll", "round trip, channel"
	r := c.run(f.trips()...)
	if c.procs == 1 {
		list = []target{
			{"T3", "round trip polled / raw rings", r.ratio(poll, "raw rings, spin and yield"), false, 2.0},
			{"T3", "net.Conn / round trip polled", r.speed(poll, "net.Conn, TCP"), true, 10},
		}
	}
	return append(list, target{"T4", "round trip over channels / raw channels", r.ratio(channel, "raw channels"), false, c.bound(1.6, 1.8)})
}

func bulkTargets(c contest) (list []target) {
	rig := newRig(dat.DispatcherConfig{}, true)
	defer rig.close()
	for _, size := range []int{64 << 10, 256 << 10, 1 << 20} {
		bound := 0.95
		if size == 64<<10 {
			bound = 0.88
		}
		r := c.run(rawCopy(rig, size), bulkWrites(rig, size, 1), bulkWrites(rig, size, 8))
		for _, write := range r.names[1:] {
			list = append(list, target{"T10", "copy / " + write, r.speed(write, r.names[0]), true, bound})
		}
	}
	return list
}
