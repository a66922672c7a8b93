package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

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
	{[]string{"T1", "T2", "T4", "T6"}, pairTargets},
	{[]string{"T3", "T4"}, tripTargets},
	{[]string{"T7"}, allocTargets},
	{[]string{"T8"}, instructionTargets},
	{[]string{"T9"}, pinnedTargets},
	{[]string{"T10"}, bulkTargets},
	{[]string{"T12"}, bulkOverTCP},
	{[]string{"T13"}, tripsOverTCP},
	{[]string{"T15"}, besideTargets},
	{[]string{"T16"}, activeTargets},
	{[]string{"T16"}, idleConnTargets},
	{[]string{"T17"}, endingTargets},
}

// targetsCommand is the command line of the targets.
type targetsCommand struct {
	Runs int      `help:"How often everything is measured. A target counts as met if all runs meet it." default:"1"`
	Only []string `help:"Measure only these targets, as in T12,T13." placeholder:"TARGET"`
}

// Run prints the project's targets. One that was missed is an error.
func (t *targetsCommand) Run(c *command, out io.Writer) error {
	var known []string
	for _, g := range gates {
		known = append(known, g.ids...)
	}
	for _, id := range t.Only {
		if !slices.Contains(known, id) {
			return fmt.Errorf("no target %q: one of %s", id, strings.Join(slices.Compact(known), ", "))
		}
	}
	return judge(c, out, t.Runs, t.measure)
}

// measure measures the wanted targets.
func (t *targetsCommand) measure(c contest) (list []target) {
	wanted := func(id string) bool { return len(t.Only) == 0 || slices.Contains(t.Only, id) }
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
	const (
		ring          = "raw MPSC ring, two events"
		poll, batch   = "pair, poll", "pair, poll, posted by 16"
		channel, conn = "pair, channel", "pair, Conn"
		batches       = "pair, batches of 32, posted by 16"
	)
	r := c.run(f.pairs()...)
	return []target{
		{"T1", "pair polled / two raw MPSC push and pop", r.ratio(poll, ring), false, 2.6},
		{"T2", "pair posted by 16 / two raw MPSC push and pop", r.ratio(batch, ring), false, 1.15},
		{"T4", "pair over a Conn / pair over a channel on bare endpoints", r.ratio(conn, channel), false, 1.15},
		{"T6", "pair over batches / pair posted by 16, polled", r.ratio(batches, batch), false, 1.25},
	}
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
