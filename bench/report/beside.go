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
	t := newBeside()
	for _, r := range list {
		r.compared(func(name string, f *figure, ch, poll *Row) { t.AppendRow(r.beside(name, f, ch, poll)) })
	}
	return t
}

// Told is Beside for readers in a hurry: it leaves out, and names, the figures that do not say which of the two is
// more, or that both are alike.
func Told(list ...*Report) (t table.Writer, left []string) {
	t = newBeside()
	for _, r := range list {
		r.compared(func(name string, f *figure, ch, poll *Row) {
			if f.tells(ch, poll) {
				t.AppendRow(r.beside(name, f, ch, poll))
			} else {
				left = append(left, name)
			}
		})
	}
	return t, left
}

func newBeside() table.Writer {
	return newTable(append([]string{"", channel, polled, "a channel beside polling"}, anchors...))
}

// compared calls do with each figure by which a channel and polling can be compared.
func (r *Report) compared(do func(name string, f *figure, ch, poll *Row)) {
	for i := range r.Rows {
		ch := &r.Rows[i]
		poll := r.Beside(ch, polled)
		if ch.Name != channel || ch.Refused != "" || poll == nil {
			continue
		}
		figures := []*figure{&p50, &cores}
		if ch.Rate == load.Max {
			figures = []*figure{&perS, &processor}
		}
		for _, f := range figures {
			do(r.load(ch)+": "+f.name, f, ch, poll)
		}
	}
}

// beside is a row of the table.
func (r *Report) beside(name string, f *figure, ch, poll *Row) table.Row {
	row := table.Row{name, f.cell(ch), f.cell(poll), f.compare(ch, poll)}
	for _, name := range anchors {
		row = append(row, f.cell(r.Beside(ch, name)))
	}
	return row
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

// compare writes the difference, or the ratio.
func (f *figure) compare(ch, poll *Row) string {
	if f.of(ch).Repeats == 0 || f.of(poll).Repeats == 0 {
		return "–"
	}
	e := f.estimate(ch, poll)
	if !e.Sure {
		return "too few repeats"
	}
	return fmt.Sprintf("%s (%s to %s)", f.side(e.Median), f.side(e.Low), f.side(e.High))
}

// estimate estimates the difference, or the ratio, from the repeats that count of both, each with the same
// repeat of the other.
func (f *figure) estimate(ch, poll *Row) stats.Estimate {
	var values []float64
	for i := range min(len(ch.Samples), len(poll.Samples)) {
		if a, b := &ch.Samples[i], &poll.Samples[i]; !a.Dropped && !b.Dropped {
			values = append(values, f.pair(a, b))
		}
	}
	return stats.Of(values)
}

// tells reports whether the repeats of each agree, or those of both in which is more.
func (f *figure) tells(ch, poll *Row) bool {
	if f.of(ch).Repeats == 0 || f.of(poll).Repeats == 0 {
		return false
	}
	equal := 0.0
	if f.times {
		equal = 1
	}
	e := f.estimate(ch, poll)
	return f.of(ch).Steady() && f.of(poll).Steady() || e.Sure && (e.Low > equal || e.High < equal)
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
