package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// overloadCommand is the command line of the measurement of a server that more is asked of than it can do.
type overloadCommand struct {
	IA       string        `help:"The interface adapter. Over loop both ends are in one process." name:"ia" default:"iwarp:127.0.0.1"`
	Load     []float64     `help:"Calls that are asked for, as multiples of what the server can do." default:"0.5,1,1.5,2,3,4"`
	Workers  int           `help:"Handlers that run at a time." default:"4"`
	Handler  time.Duration `help:"How long a handler takes; it sleeps." default:"10ms"`
	Deadline time.Duration `help:"How long a caller waits." default:"100ms"`
	Clients  int           `help:"Clients that share the calls." default:"4"`
	Format   string        `help:"table or json." enum:"table,json" default:"table"`
	Peer     bool          `help:"Be the server of another process." hidden:""`
}

// overloadLasts is how long a turn is.
const overloadLasts = 2 * time.Second

// overloadRow is what one load has shown. Rates are calls a second, medians over the repeats.
type overloadRow struct {
	Load    float64 `json:"load"`    // of what the server can do
	Asked   float64 `json:"asked"`   // calls made
	InTime  float64 `json:"inTime"`  // answered before the deadline
	Refused float64 `json:"refused"` // not begun, and told so before the deadline
	Late    float64 `json:"late"`    // without an answer at the deadline
	InVain  float64 `json:"inVain"`  // begun by a handler, and not answered in time
	OfMost  float64 `json:"ofMost"`  // answers in time, of the most of all loads
	// Median and P99 are of the calls answered in time, Refusal the median of the time until a refusal.
	Median  time.Duration `json:"medianNs"`
	P99     time.Duration `json:"p99Ns"`
	Refusal time.Duration `json:"refusalNs"`
}

// overloadReport is what --format json prints.
type overloadReport struct {
	Kind      string        `json:"kind"`
	Command   string        `json:"command"`
	Processes int           `json:"processes"`
	Capacity  float64       `json:"capacity"` // calls a second: handlers at a time by the time that one takes
	Repeats   int           `json:"repeats"`
	Answers   string        `json:"couldNot,omitempty"` // why this machine could not answer
	Rows      []overloadRow `json:"rows"`
}

// Run prints whether the machine could answer, and a row for each load.
func (o *overloadCommand) Run(c *command, out io.Writer) error {
	if err := o.check(or(c.Duration, overloadLasts)); err != nil {
		return err
	}
	if o.Peer {
		return o.serve(os.Stdin, out)
	}
	far, err := o.begin()
	if err != nil {
		return err
	}
	report, q, err := o.measure(c, far)
	if err = errors.Join(err, far.end()); err != nil {
		return err
	}
	if o.Format == "json" {
		report.Answers = q.why(0)
		to := json.NewEncoder(out)
		to.SetIndent("", "  ")
		if err = to.Encode(report); report.Answers != "" {
			err = errors.Join(err, fmt.Errorf("%w: %s", errUnable, report.Answers))
		}
	} else {
		err = q.tell(out, 0)
		o.print(out, report)
	}
	return err
}

// check refuses settings that measure nothing.
func (o *overloadCommand) check(turn time.Duration) error {
	for _, load := range o.Load {
		if math.IsNaN(load) || load <= 0 || load > 100 {
			return misusedf("a load of %g: above 0 and up to 100 times what the server can do", load)
		}
	}
	switch {
	case o.Workers < 1 || o.Workers > 1000:
		return misusedf("%d workers: from 1 to 1000", o.Workers)
	case o.Handler < time.Millisecond || o.Handler > time.Minute:
		return misusedf("a handler of %v: from 1ms to 1m", o.Handler)
	case o.Deadline <= o.Handler || o.Deadline > time.Minute:
		return misusedf("a deadline of %v: longer than the handler's %v, and up to 1m", o.Deadline, o.Handler)
	case turn < 3*o.Deadline:
		return misusedf("a turn of %v: three deadlines of %v or more", turn, o.Deadline)
	case o.Clients < 1 || o.Clients > 128:
		return misusedf("%d clients: from 1 to 128", o.Clients)
	}
	return twice("load", o.Load)
}

// capacity is what the server can do, in calls a second.
func (o *overloadCommand) capacity() float64 { return float64(o.Workers) / o.Handler.Seconds() }

// measure takes turns with all loads.
func (o *overloadCommand) measure(c *command, far *overloadFar) (*overloadReport, *quiet, error) {
	r := &overloadReport{Kind: "overload", Command: c.line, Processes: far.processes(), Capacity: o.capacity(), Repeats: or(c.Repeats, 3)}
	q, lasts := &quiet{watch: c.watch}, or(c.Duration, overloadLasts)
	callers, err := o.dial(far)
	if err != nil {
		return nil, nil, err
	}
	turns := make([][]overloadTurn, len(o.Load))
	bar := newBar(len(o.Load) * r.Repeats)
	if _, err = callers.turn(o, 1, lasts/4); err == nil { // the server has learned how long its handlers take
		for range r.Repeats {
			for i, load := range o.Load {
				var t overloadTurn
				var failed error
				q.turn(func() { t, failed = callers.turn(o, load, lasts) })
				err = errors.Join(err, failed)
				turns[i] = append(turns[i], t)
				check(bar.Add(1))
			}
		}
	}
	check(bar.Finish())
	for i, load := range o.Load {
		if err == nil {
			r.Rows = append(r.Rows, newOverloadRow(load, turns[i]))
		}
	}
	r.compare()
	return r, q, errors.Join(err, callers.close())
}

// newOverloadRow makes a load's row of its turns.
func newOverloadRow(load float64, turns []overloadTurn) overloadRow {
	rate := func(n func(t *overloadTurn) int64) float64 {
		return medianTurn(turns, func(t *overloadTurn) float64 { return float64(n(t)) / t.lasted.Seconds() })
	}
	took := func(d func(t *overloadTurn) time.Duration) time.Duration { return medianTurn(turns, d) }
	return overloadRow{
		Load:    load,
		Asked:   rate(func(t *overloadTurn) int64 { return t.asked }),
		InTime:  medianTurn(turns, func(t *overloadTurn) float64 { return float64(t.counted) / t.window.Seconds() }),
		Refused: rate(func(t *overloadTurn) int64 { return int64(len(t.refused)) }),
		Late:    rate(func(t *overloadTurn) int64 { return t.late }),
		InVain:  rate(func(t *overloadTurn) int64 { return t.begun - int64(len(t.inTime)) }),
		Median:  took(func(t *overloadTurn) time.Duration { return at(t.inTime, 0.5) }),
		P99:     took(func(t *overloadTurn) time.Duration { return at(t.inTime, 0.99) }),
		Refusal: took(func(t *overloadTurn) time.Duration { return at(t.refused, 0.5) }),
	}
}

// medianTurn is the median over turns of what each has.
func medianTurn[T int64 | float64 | time.Duration](turns []overloadTurn, of func(t *overloadTurn) T) T {
	all := make([]T, 0, len(turns))
	for i := range turns {
		all = append(all, of(&turns[i]))
	}
	return at(all, 0.5)
}

// at is the value at a part of all values; 0 of none.
func at[T int64 | float64 | time.Duration](all []T, part float64) T {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[int(part*float64(len(all)-1)+0.5)]
}

// compare says of each row how its answers in time compare with the most.
func (r *overloadReport) compare() {
	most := 0.0
	for _, row := range r.Rows {
		most = max(most, row.InTime)
	}
	for i := range r.Rows {
		if most > 0 {
			r.Rows[i].OfMost = r.Rows[i].InTime / most
		}
	}
}

// print writes the curve as a table.
func (o *overloadCommand) print(out io.Writer, r *overloadReport) {
	where := "a client's process, and a server's"
	if r.Processes == 1 {
		where = "one process has both ends"
	}
	fmt.Fprintf(out, "%d handlers of %v can do %.0f calls/s; callers wait %v; %s (%s)\n", o.Workers, o.Handler, r.Capacity, o.Deadline, o.IA, where)
	t := table.NewWriter()
	t.AppendHeader(table.Row{"load", "calls/s", "in time/s", "of the most", "", "refused/s", "late/s", "in vain/s", "p50", "p99", "until refused"})
	for _, row := range r.Rows {
		bar := make([]rune, int(20*row.OfMost+0.5))
		for i := range bar {
			bar[i] = '█'
		}
		t.AppendRow(table.Row{
			fmt.Sprintf("%g", row.Load), whole(row.Asked), whole(row.InTime), fmt.Sprintf("%.2f", row.OfMost), string(bar), whole(row.Refused), whole(row.Late),
			whole(row.InVain), row.Median.Round(100 * time.Microsecond), row.P99.Round(100 * time.Microsecond), row.Refusal.Round(10 * time.Microsecond),
		})
	}
	fmt.Fprintln(out, t.Render())
}

func whole(rate float64) string { return fmt.Sprintf("%.0f", rate) }

// overloadContext bounds what takes no time unless something is wrong.
func overloadContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 30*time.Second)
}
