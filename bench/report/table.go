package report

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"godat/bench/load"
	"godat/bench/stats"
)

// WriteTables writes whether the machine could answer, what a channel costs beside polling, a table for each
// load, and what was refused.
func (r *Report) WriteTables(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", r.Verdict())
	r.writeTables(w, func(t table.Writer, title string) string {
		t.SetTitle(title)
		return t.Render()
	})
	fmt.Fprintf(w, "%s\n%s\n", r.Host, r.method())
}

// WriteMarkdown writes the same in Markdown, without the machine and the method.
func (r *Report) WriteMarkdown(w io.Writer) {
	fmt.Fprintf(w, "## %s%s\n\n`%s`\n\n%s\n\n", r.provider(), r.Title(), r.Command, r.Verdict())
	r.writeTables(w, func(t table.Writer, title string) string {
		return "### " + title + "\n\n" + t.RenderMarkdown()
	})
}

// provider begins a heading with the provider of the first row that has one.
func (r *Report) provider() string {
	for i := range r.Rows {
		if p := r.Rows[i].Provider; p != "" {
			return p + ": "
		}
	}
	return ""
}

// newTable makes a table whose columns are numbers, but for the first.
func newTable(columns []string) table.Writer {
	t := table.NewWriter()
	t.Style().Format.Header = text.FormatDefault
	var header table.Row
	var right []table.ColumnConfig
	for i, c := range columns {
		header = append(header, c)
		if i > 0 {
			right = append(right, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(right)
	return t
}

func (r *Report) writeTables(w io.Writer, render func(t table.Writer, title string) string) {
	if t := Beside(r); (r.Kind == Delivery || r.Kind == Latency) && t.Length() > 0 {
		fmt.Fprintf(w, "%s\n\n", render(t, "a channel beside polling"))
	}
	for _, g := range r.groups() {
		t := newTable(r.columns())
		for _, row := range g.rows {
			if row.Refused == "" {
				t.AppendRow(r.cells(row))
			}
		}
		if t.Length() > 0 {
			fmt.Fprintln(w, render(t, g.title))
		} else {
			fmt.Fprintf(w, "%s: nothing could be measured\n", g.title)
		}
		for _, refused := range g.refused() {
			fmt.Fprintf(w, "\n%v refused: %s\n", refused, refused.text)
		}
		for _, doubt := range r.doubts(&g) {
			fmt.Fprintf(w, "\n%s\n", doubt)
		}
		fmt.Fprintln(w)
	}
	var does []note
	for i := range r.Rows {
		does = add(does, r.Rows[i].Does, r.Rows[i].Name)
	}
	for _, n := range does {
		fmt.Fprintf(w, "- %v: %s\n", n, n.text)
	}
}

// columns are those of the report's tables. What the report is about has its interval
// beside it.
func (r *Report) columns() []string {
	list := []string{"", "per second", "p50", "p90", "p99", "p99.9", "p99.99", "max", "processor", "cores", "allocs"}
	return slices.Insert(list, r.interval(), "low–high")
}

// interval is the column of the interval.
func (r *Report) interval() int {
	switch r.Kind {
	case Bandwidth, Connect:
		return 2
	case Scale:
		return 9
	default:
		return 3
	}
}

// method says in short how the figures were taken.
func (r *Report) method() string {
	kept, dropped := r.turns()
	return fmt.Sprintf("Medians of %d repeats of %v by turns, %d of all %d dropped as disturbed; low–high is the 95 %% interval, or with under 6 repeats the range.\n"+
		"Differences and ratios are medians of those of the same repeat, which need not be those of two medians.\n"+
		"p90 and above are of all repeats together, and have at least %d messages beyond them. Processor time is the whole process's for a message, without the poster's wait for its times.\n"+
		"How, and what not to conclude: bench/README.md",
		r.Repeats, r.Duration, dropped, kept+dropped, beyond)
}

// group is the rows of one load.
type group struct {
	title string
	rows  []*Row
}

func (r *Report) groups() (list []group) {
	for i := range r.Rows {
		row := &r.Rows[i]
		title := r.load(row)
		at := slices.IndexFunc(list, func(g group) bool { return g.title == title })
		if at < 0 {
			list = append(list, group{title: title})
			at = len(list) - 1
		}
		list[at].rows = append(list[at].rows, row)
	}
	return list
}

// load says under which load a row was measured.
func (r *Report) load(row *Row) string {
	var what string
	switch {
	case r.Kind == Connect:
		return fmt.Sprintf("%s, %d at a time", offered(row.Rate), row.Depth)
	case r.Kind == Peers:
		return fmt.Sprintf("%s of %d bytes, %d outstanding", row.way(), row.Size, row.Depth)
	case r.Kind == Latency && row.Rate == load.Closed:
		what = "round trips between two goroutines"
	default:
		what = offered(row.Rate)
	}
	what += fmt.Sprintf(", %d bytes, %d outstanding", row.Size, row.Depth)
	if r.Kind == Scale {
		what += fmt.Sprintf(", %d connections", row.Conns)
	}
	if row.Producers > 1 {
		what += fmt.Sprintf(", %d producers", row.Producers)
	}
	return what
}

// refused returns the reasons for which rows were refused, each once.
func (g *group) refused() (list []note) {
	for _, row := range g.rows {
		list = add(list, row.Refused, row.Name)
	}
	if len(list) == 1 && len(g.rows) > 1 && len(list[0].names) == len(g.rows) {
		list[0].names = []string{"all"}
	}
	return list
}

func offered(rate load.Rate) string {
	switch rate {
	case load.Closed:
		return "closed loop: one goroutine posts and takes"
	case load.Max:
		return "as many as can be posted"
	}
	return rate.String() + " a second offered"
}

func (r *Report) cells(of *Row) table.Row {
	row := table.Row{of.Name, of.throughput(r.Kind)}
	if e, ok := of.Median(); ok {
		row = append(row, duration(e.Median))
	} else if ns, ok := of.At(50); ok {
		row = append(row, duration(ns))
	} else if of.Saturated {
		row = append(row, "saturated")
	} else {
		row = append(row, "–")
	}
	for _, percent := range Percents[1:] {
		if ns, ok := of.At(percent); ok {
			row = append(row, duration(ns))
		} else {
			row = append(row, "–")
		}
	}
	inUse := "–"
	if of.Cores.Repeats > 0 {
		inUse = twoDigits(of.Cores.Median)
	}
	row = append(row, known(of.Max), known(of.Processor.Median), inUse, twoDigits(of.Allocs.Median))
	interval, about := "", r.interval()-1
	if e, write, ok := r.subject(of); ok {
		interval = e.Range(write)
		if e.Shape == stats.TwoStates { // a median of two states is neither
			row[about] = "two states"
		}
	}
	return slices.Insert(row, r.interval(), any(interval))
}

// subject is the figure of a row that the report is about, and how it is written; ok is
// false where there is none.
func (r *Report) subject(row *Row) (e stats.Estimate, write func(float64) string, ok bool) {
	switch r.Kind {
	case Bandwidth:
		e, write = row.PerSecond, func(v float64) string { return perSecond(v*float64(row.Size)) + "B/s" }
	case Connect:
		e, write = row.PerSecond, perSecond
	case Scale:
		e, write = row.Processor, duration
	default:
		e, _ = row.Median()
		write = duration
	}
	return e, write, e.Repeats > 0 && row.Refused == ""
}

// doubts name the rows of a group whose repeats don't agree, or of which one repeat lies
// apart.
func (r *Report) doubts(g *group) (list []string) {
	for _, row := range g.rows {
		e, write, ok := r.subject(row)
		if doubt := e.Doubt(write); ok && doubt != "" {
			switch e.Shape {
			case "":
				doubt = "no agreement, " + doubt
			case stats.Stalled, stats.TwoStates:
				doubt = string(e.Shape) + ", " + doubt
			case stats.Drifting: // doubt says that it drifts
			}
			list = append(list, row.Name+": "+doubt)
		}
	}
	return list
}

// known writes nanoseconds, if they were measured.
func known(ns float64) string {
	if ns > 0 {
		return duration(ns)
	}
	return "–"
}

// duration writes nanoseconds with three digits.
func duration(ns float64) string {
	switch d := time.Duration(ns); {
	case d < time.Microsecond:
		return fmt.Sprintf("%.0f ns", ns)
	case d < time.Millisecond:
		return fmt.Sprintf("%.3g µs", ns/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.3g ms", ns/1e6)
	}
	return fmt.Sprintf("%.3g s", ns/1e9)
}

// throughput is what a row has carried in a second.
func (r *Row) throughput(kind Kind) string {
	if n := r.PerSecond.Median * float64(r.Size); kind == Bandwidth {
		return perSecond(n) + "B"
	}
	return perSecond(r.PerSecond.Median)
}

func perSecond(n float64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f G", n/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.2f M", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f k", n/1e3)
	}
	return fmt.Sprintf("%.0f", n)
}
