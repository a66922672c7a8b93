package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"godat/bench/host"
	"godat/bench/stats"
)

// gateFlags say how often targets are measured.
type gateFlags struct {
	Runs int `help:"How often everything is measured. A target counts as met if all runs meet it." default:"1"`
}

// gate measures targets with the contest's number of processors. It may write what has
// no aim.
type gate func(w io.Writer, c contest) []target

// judge measures g's targets with one processor and with two, in several runs, and
// prints them. It is an error if a run misses one.
func (g gateFlags) judge(c *command, out io.Writer, measure gate) error {
	if g.Runs < 1 {
		return fmt.Errorf("%d runs: at least 1", g.Runs)
	}
	var outcomes [2]outcomes // by the number of processors
	for run := range g.Runs {
		also := out
		if run > 0 {
			also = io.Discard // it has been printed
		} else {
			fmt.Fprintf(out, "%s\n%d runs of %d repeats\n\n", host.Describe(), g.Runs, c.contest(0).repeats)
		}
		for procs := 1; procs <= min(2, runtime.NumCPU()); procs++ { // one processor first, because its figures are the steady ones
			began := time.Now()
			before := runtime.GOMAXPROCS(procs) // devices ask for the number when they are opened
			outcomes[procs-1].add(measure(also, c.contest(procs)))
			runtime.GOMAXPROCS(before)
			fmt.Fprintf(os.Stderr, "run %d of %d with GOMAXPROCS=%d took %v\n", run+1, g.Runs, procs, time.Since(began).Round(time.Second))
		}
	}
	missed := 0
	for i, list := range outcomes {
		missed += list.print(out, i+1)
	}
	if missed > 0 {
		return fmt.Errorf("%d targets %w", missed, errMissed)
	}
	return nil
}

// contest is how contestants take turns, as the flags say.
func (c *command) contest(procs int) contest {
	return contest{repeats: or(c.Repeats, 9), slice: or(c.Duration, 40*time.Millisecond), procs: procs}
}

// outcome is a target in several runs.
type outcome struct {
	target // of the first run
	runs   []stats.Estimate
	met    int
}

// outcomes are those of all targets, in the order in which they were measured first.
type outcomes []outcome

// add adds a run.
func (list *outcomes) add(run []target) {
	for _, t := range run {
		i := slices.IndexFunc(*list, func(o outcome) bool { return o.id == t.id && o.what == t.what })
		if i < 0 {
			i = len(*list)
			*list = append(*list, outcome{target: t})
		}
		o := &(*list)[i]
		o.runs = append(o.runs, t.got)
		if t.met() {
			o.met++
		}
	}
}

func (o *outcome) passed() bool { return o.met == len(o.runs) }

// spread is the median of the runs, and how far apart they are. Of one run it is the
// interval of its repeats.
func (o *outcome) spread() stats.Estimate {
	if len(o.runs) == 1 {
		return o.runs[0]
	}
	var medians []float64
	for _, run := range o.runs {
		medians = append(medians, run.Median)
	}
	e := stats.Of(medians)
	e.Low, e.High = slices.Min(medians), slices.Max(medians)
	return e
}

func (o *outcome) verdict() string {
	switch {
	case o.bound == none:
		return ""
	case len(o.runs) == 1 && o.passed():
		return "met"
	case len(o.runs) == 1:
		return "MISSED"
	case o.passed():
		return fmt.Sprintf("met in all %d", o.met)
	}
	return fmt.Sprintf("MISSED in %d of %d", len(o.runs)-o.met, len(o.runs))
}

// print prints the targets of one number of processors as a table, and returns how many
// were missed.
func (list outcomes) print(w io.Writer, procs int) (missed int) {
	if len(list) == 0 {
		return 0
	}
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.Style().Format.Header = text.FormatDefault
	t.SetTitle(fmt.Sprintf("GOMAXPROCS=%d", procs))
	t.AppendHeader(table.Row{"", "ratio", "median", "range", "target", ""})
	aims := 0
	for i := range list {
		o := &list[i]
		e := o.spread()
		spread := ""
		if e.Low != e.High {
			spread = figure(e.Low) + "–" + figure(e.High)
		}
		t.AppendRow(table.Row{o.id, o.what, figure(e.Median), spread, o.aim(), o.verdict()})
		if o.bound != none {
			aims++
		}
		if !o.passed() {
			missed++
		}
	}
	t.Render()
	fmt.Fprintf(w, "%d of %d targets met\n\n", aims-missed, aims)
	return missed
}

// aim is the bound as the table shows it.
func (o *outcome) aim() string {
	switch {
	case o.bound == none:
		return ""
	case o.atLeast:
		return "≥ " + figure(o.bound)
	}
	return "≤ " + figure(o.bound)
}

// figure writes a ratio with two digits behind the point, and counts without.
func figure(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
