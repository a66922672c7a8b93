package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"godat/bench/host"
	"godat/bench/stats"
)

// errMissed is the error of a target that was missed.
var errMissed = errors.New("missed")

// judge measures targets in several runs, and prints them. It is an error if a run misses
// one, or if the machine was too busy to tell.
func judge(c *command, out io.Writer, runs int, measure gate) error {
	if runs < 1 {
		return fmt.Errorf("%d runs: at least 1", runs)
	}
	if c.Repeats < 0 {
		return fmt.Errorf("%d repeats: at least 1", c.Repeats)
	}
	var all [2]outcomes // by the number of processors
	for run := range runs {
		c.byProcessors(fmt.Sprintf("run %d of %d", run+1, runs), func(x contest) { all[x.procs-1].add(measure(x)) })
	}
	if len(all[0])+len(all[1]) == 0 {
		return fmt.Errorf("%w: it has measured no target", errUnable)
	}
	bounds, missed, untold := 0, 0, 0
	var tables strings.Builder
	for i, list := range all {
		for _, o := range list {
			if o.bound != none {
				bounds++
			}
			if !o.told() {
				untold++
			} else if !o.passed() {
				missed++
			}
		}
		list.print(&tables, i+1)
	}
	verdict := fmt.Sprintf("This machine could answer: %d of %d targets are met.", bounds-missed, bounds)
	if untold > 0 {
		verdict = fmt.Sprintf("This machine could not answer: %d of %d targets have too few undisturbed repeats.", untold, bounds)
	}
	fmt.Fprintf(out, "%s\n%s\n%d runs of %d repeats\n\n%s", verdict, host.Describe(), runs, or(c.Repeats, 9), tables.String())
	switch {
	case untold > 0:
		return fmt.Errorf("%w: %d targets were not told", errUnable, untold)
	case missed > 0:
		return fmt.Errorf("%d targets %w", missed, errMissed)
	}
	return nil
}

// outcome is a target in several runs.
type outcome struct {
	target // of the first run
	runs   []target
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
		(*list)[i].runs = append((*list)[i].runs, t)
	}
}

// count is how many runs are as is says.
func (o *outcome) count(is func(target) bool) (n int) {
	for _, t := range o.runs {
		if is(t) {
			n++
		}
	}
	return n
}

func (o *outcome) told() bool   { return o.count(target.told) == len(o.runs) }
func (o *outcome) passed() bool { return o.count(target.met) == len(o.runs) }

// estimate is the median of the runs, and how far apart they are. Of one run it is that of its
// repeats.
func (o *outcome) estimate() stats.Estimate {
	if len(o.runs) == 1 {
		return o.runs[0].got
	}
	var medians []float64
	for _, run := range o.runs {
		medians = append(medians, run.got.Median)
	}
	e := stats.Of(medians)
	e.Low, e.High = slices.Min(medians), slices.Max(medians)
	return e
}

func (o *outcome) verdict() string {
	met := o.count(target.met)
	switch {
	case o.bound == none:
		return ""
	case !o.told():
		return "not told: too few undisturbed repeats"
	case len(o.runs) == 1 && o.passed():
		return "met"
	case len(o.runs) == 1:
		return "MISSED"
	case o.passed():
		return fmt.Sprintf("met in all %d", met)
	}
	return fmt.Sprintf("MISSED in %d of %d", len(o.runs)-met, len(o.runs))
}

// print prints the targets of one number of processors as a table.
func (list outcomes) print(w io.Writer, procs int) {
	if len(list) == 0 {
		return
	}
	t := newTable(w, fmt.Sprintf("GOMAXPROCS=%d", procs))
	t.AppendHeader(table.Row{"", "ratio", "median", "low–high", "target", ""})
	for i := range list {
		o := &list[i]
		e := o.estimate()
		t.AppendRow(table.Row{o.id, o.what, figure(e.Median), e.Range(figure), o.aim(), o.verdict()})
	}
	t.Render()
	fmt.Fprintln(w)
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
