package report

import (
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"

	"godat/bench/load"
	"godat/bench/stats"
)

// The names of the rows that are put beside each other.
const (
	polled  = "poll"
	channel = "channel"
)

// anchors are what a program writes in place of the library.
var anchors = []string{"raw channel", "net.Conn"}

// figure is what a channel and polling are compared by.
type figure struct {
	name  string
	of    func(*Row) stats.Estimate
	write func(float64) string
	// pair compares a channel and polling in the same repeat: their difference, or if times is set their ratio.
	pair  func(ch, poll *Sample) float64
	times bool
}

var (
	p50 = figure{
		name: "p50", write: duration, of: func(r *Row) stats.Estimate { e, _ := r.Median(); return e },
		pair: func(ch, poll *Sample) float64 { return float64(ch.P50 - poll.P50) },
	}
	cores = figure{
		name: "cores", write: twoDigits, of: func(r *Row) stats.Estimate { return r.Cores },
		pair: func(ch, poll *Sample) float64 {
			return ch.Processor.Seconds()/ch.Took.Seconds() - poll.Processor.Seconds()/poll.Took.Seconds()
		},
	}
	perS = figure{
		name: "per second", write: perSecond, of: func(r *Row) stats.Estimate { return r.PerSecond }, times: true,
		pair: func(ch, poll *Sample) float64 {
			return float64(ch.Count) / ch.Took.Seconds() / (float64(poll.Count) / poll.Took.Seconds())
		},
	}
	processor = figure{
		name: "processor", write: duration, of: func(r *Row) stats.Estimate { return r.Processor },
		pair: func(ch, poll *Sample) float64 {
			return float64(ch.Processor)/float64(max(ch.Count, 1)) - float64(poll.Processor)/float64(max(poll.Count, 1))
		},
	}
)

// Beside is a table of what a channel costs beside polling, under each load with figures of both, and of what a
// program would use in place of the library. Where repeats don't agree, it has where they lie.
func Beside(list ...*Report) table.Writer {
	t := newTable(append([]string{"", channel, polled, "a channel beside polling"}, anchors...))
	for _, r := range list {
		for i := range r.Rows {
			ch := &r.Rows[i]
			if poll := r.Beside(ch, polled); ch.Name == channel && ch.Refused == "" && poll != nil {
				t.AppendRows(r.beside(ch, poll))
			}
		}
	}
	return t
}

// beside are the rows of one load.
func (r *Report) beside(ch, poll *Row) (rows []table.Row) {
	figures := []figure{p50, cores}
	if ch.Rate == load.Max {
		figures = []figure{perS, processor}
	}
	for _, f := range figures {
		row := table.Row{r.load(ch) + ": " + f.name, f.cell(ch), f.cell(poll), f.compare(ch, poll)}
		for _, name := range anchors {
			row = append(row, f.cell(r.Beside(ch, name)))
		}
		rows = append(rows, row)
	}
	return rows
}

// cell is a row's median, or where its repeats lie.
func (f *figure) cell(row *Row) string {
	if row == nil || f.of(row).Repeats == 0 {
		return "–"
	}
	e := f.of(row)
	if lie := e.Range(f.write); !e.Steady() && lie != "" {
		return lie
	}
	return f.write(e.Median)
}

// compare estimates the difference, or the ratio, from the repeats that count of both, each with the same
// repeat of the other.
func (f *figure) compare(ch, poll *Row) string {
	if f.of(ch).Repeats == 0 || f.of(poll).Repeats == 0 {
		return "–"
	}
	var values []float64
	for i := range min(len(ch.Samples), len(poll.Samples)) {
		if a, b := &ch.Samples[i], &poll.Samples[i]; !a.Dropped && !b.Dropped {
			values = append(values, f.pair(a, b))
		}
	}
	e := stats.Of(values)
	if !e.Sure {
		return "too few repeats"
	}
	return fmt.Sprintf("%s (%s to %s)", f.side(e.Median), f.side(e.Low), f.side(e.High))
}

// side writes a difference with its sign, or a ratio.
func (f *figure) side(v float64) string {
	switch {
	case f.times:
		return "× " + twoDigits(v)
	case v < 0:
		return "−" + f.write(-v)
	}
	return "+" + f.write(v)
}

func twoDigits(v float64) string { return fmt.Sprintf("%.2f", v) }
