package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"godat/bench/load"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// page is what the template shows.
type page struct {
	*Report
	Names  []string // in the order of their colors
	Charts []figure
	Groups []section
	Notes  []*Row
	Method string
	Raw    string
}

// figure is a chart and what it shows.
type figure struct {
	Title, Says string
	SVG         template.HTML
}

// section is a table of the page.
type section struct {
	Title   string
	Header  []string
	Rows    [][]any
	Refused []refusal
}

// WriteHTML writes the report as a page that needs nothing else: no script runs in it,
// and it fetches nothing.
func (r *Report) WriteHTML(w io.Writer) error {
	p := page{Report: r, Names: r.names(), Notes: r.notes(), Method: r.method()}
	charts := []func([]string) ([]figure, error){r.percentileCharts, r.loadCharts, r.sweepCharts}
	if r.Kind == Peers { // work that differs has no place on one axis
		p.Names, charts = nil, nil
	}
	for _, draw := range charts {
		figures, err := draw(p.Names)
		if err != nil {
			return err
		}
		p.Charts = append(p.Charts, figures...)
	}
	for _, g := range r.groups() {
		s := section{Title: g.title, Header: r.columns(), Refused: g.refused()}
		for _, row := range g.rows {
			if row.Refused == "" {
				s.Rows = append(s.Rows, r.cells(row))
			}
		}
		p.Groups = append(p.Groups, s)
	}
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	p.Raw = string(raw)
	return pageTemplate.Execute(w, p)
}

const modes = 7 // colors of modes; anchors have the others, and broken lines

// names are the names of all rows: modes first, so that the colors of modes differ most.
func (r *Report) names() (list []string) {
	var anchors []string
	for i := range r.Rows {
		row := &r.Rows[i]
		into := &list
		if row.Anchor {
			into = &anchors
		}
		if !slices.Contains(*into, row.Name) {
			*into = append(*into, row.Name)
		}
	}
	for len(list) < modes {
		list = append(list, "")
	}
	return append(list, anchors...)
}

var (
	latencyAxis = axis{label: "latency", log: true, ticks: decades{duration}}
	ninesAxis   = axis{label: "% of the messages", ticks: ninesTicks}
	rateAxis    = axis{label: "messages a second offered", log: true, ticks: decades{func(v float64) string { return load.Rate(v).String() }}}
	coresAxis   = axis{label: "cores", zero: true, ticks: plot.DefaultTicks{}}
	sizeAxis    = axis{label: "bytes of a message", log: true, ticks: decades{func(v float64) string { return fmt.Sprintf("%.0f", v) }}}
	bytesAxis   = axis{label: "bytes a second", log: true, ticks: decades{func(v float64) string { return perSecond(v) + "B" }}}
	connsAxis   = axis{label: "connections", log: true, ticks: decades{func(v float64) string { return fmt.Sprintf("%.0f", v) }}}
	costAxis    = axis{label: "processor time of a message", log: true, ticks: decades{duration}}
)

// percentileCharts has a chart of the latencies for each load.
func (r *Report) percentileCharts(names []string) (list []figure, err error) {
	for _, g := range r.groups() {
		var lines []line
		for _, row := range g.rows {
			l := line{name: row.Name}
			for _, p := range row.Curve {
				if p.Percent < 100 && p.NS > 0 {
					l.points = append(l.points, plotter.XY{X: nines(p.Percent), Y: float64(p.NS)})
				}
			}
			lines = append(lines, l)
		}
		list, err = add(list, figure{
			Title: "Latency: " + g.title,
			Says:  "How long the slowest part of the messages took, from when they were to be posted.",
		}, ninesAxis, latencyAxis, lines, names)
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// loadCharts has charts of latency, cores and processor time by the offered load, if
// there were several.
func (r *Report) loadCharts(names []string) (list []figure, err error) {
	var p99, cores, cost []line
	several := false
	for _, name := range names {
		a, b, c := line{name: name, end: true}, line{name: name}, line{name: name}
		for _, row := range r.open(name) {
			b.points = append(b.points, plotter.XY{X: float64(row.Rate), Y: row.Cores.Median})
			c.points = append(c.points, plotter.XY{X: float64(row.Rate), Y: max(1, row.Processor.Median)})
			if e, ok := row.At(99); ok {
				a.points = append(a.points, plotter.XY{X: float64(row.Rate), Y: e.Median})
			}
		}
		several = several || len(b.points) > 1
		p99, cores, cost = append(p99, a), append(cores, b), append(cost, c)
	}
	if !several {
		return nil, nil
	}
	for _, f := range []struct {
		figure
		y     axis
		lines []line
	}{
		{figure{Title: "99th percentile by load", Says: "A dot is the greatest load measured that was kept up with: the knee is beyond it."}, latencyAxis, p99},
		{figure{Title: "Cores in use by load", Says: "Polling uses a core whether messages come or not; where another line reaches it, sleeping no longer saves one."}, coresAxis, cores},
		{figure{Title: "Processor time of a message by load", Says: "Of the whole process: post, transfer, delivery, and the consumer's wait if it polls."}, costAxis, cost},
	} {
		if list, err = add(list, f.figure, rateAxis, f.y, f.lines, names); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// open are the rows of a name in open loop, by rate, of the first size and depth.
func (r *Report) open(name string) (list []*Row) {
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Name == name && row.Rate.Open() && row.Refused == "" &&
			(len(list) == 0 || row.Size == list[0].Size && row.Depth == list[0].Depth) {
			list = append(list, row)
		}
	}
	slices.SortFunc(list, func(a, b *Row) int { return int(a.Rate - b.Rate) })
	return list
}

// sweepCharts has a chart by size, or by number of connections, if there were several.
func (r *Report) sweepCharts(names []string) ([]figure, error) {
	switch r.Kind {
	case Bandwidth:
		return r.sweep(figure{Title: "Bytes in a second by size", Says: "What is carried, by size of a message."}, sizeAxis, bytesAxis, names,
			func(row *Row) (x, y float64, ok bool) {
				return float64(row.Size), row.PerSecond.Median * float64(row.Size), row.Rate == r.Rows[0].Rate
			})
	case Scale:
		return r.sweep(figure{Title: "Processor time of a message by connections", Says: "Connections that messages go over in turns leave the caches."}, connsAxis, costAxis, names,
			func(row *Row) (x, y float64, ok bool) {
				return float64(row.Conns), max(1, row.Processor.Median), row.Rate == r.Rows[0].Rate
			})
	default:
		return r.sweep(figure{Title: "Median by size, closed loop", Says: "Where the lines meet, the copy costs more than the delivery."}, sizeAxis, latencyAxis, names,
			func(row *Row) (x, y float64, ok bool) {
				e, ok := row.At(50)
				return float64(row.Size), e.Median, ok && row.Rate == load.Closed
			})
	}
}

// sweep draws what of says about each row that it wants, if a line has several places.
func (r *Report) sweep(f figure, x, y axis, names []string, of func(*Row) (x, y float64, ok bool)) ([]figure, error) {
	var lines []line
	several := false
	for _, name := range names {
		l := line{name: name}
		for i := range r.Rows {
			row := &r.Rows[i]
			if x, y, ok := of(row); ok && row.Name == name && row.Refused == "" {
				l.points = append(l.points, plotter.XY{X: x, Y: y})
			}
		}
		slices.SortFunc(l.points, func(a, b plotter.XY) int { return int(a.X - b.X) })
		several = several || len(l.points) > 1 && l.points[0].X != l.points[len(l.points)-1].X
		lines = append(lines, l)
	}
	if !several {
		return nil, nil
	}
	return add(nil, f, x, y, lines, names)
}

// add appends the figure, with its chart, unless it would be empty.
func add(list []figure, f figure, x, y axis, lines []line, names []string) ([]figure, error) {
	if !slices.ContainsFunc(lines, func(l line) bool { return len(l.points) > 0 }) {
		return list, nil
	}
	svg, err := chart(x, y, lines, names)
	if err != nil {
		return nil, err
	}
	f.SVG = svg
	return append(list, f), nil
}
