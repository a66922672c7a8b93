package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"godat/bench/load"
	"godat/bench/stats"
)

var (
	latencyAxis   = axis{label: "latency", log: true, ticks: decades{duration}}
	ninesAxis     = axis{label: "% of the messages", ticks: ninesTicks}
	rateAxis      = axis{label: "messages a second offered", log: true, ticks: decades{inUnits}}
	coresAxis     = axis{label: "cores", zero: true, ticks: plot.DefaultTicks{}}
	sizeAxis      = axis{label: "bytes of a message", log: true}
	bytesAxis     = axis{label: "bytes a second", log: true, ticks: decades{func(v float64) string { return inUnits(v) + "B" }}}
	connsAxis     = axis{label: "connections", log: true}
	depthAxis     = axis{label: "messages outstanding", log: true}
	producersAxis = axis{label: "producers", log: true}
	countAxis     = axis{label: "messages a second", log: true, ticks: decades{inUnits}}
	costAxis      = axis{label: "processor time", log: true, ticks: decades{duration}}
)

// inUnits writes a round number, as in 10k.
func inUnits(v float64) string {
	if v >= 1e9 {
		return strconv.FormatFloat(v/1e9, 'g', 4, 64) + "G"
	}
	return load.Rate(v).String()
}

// percentileCharts has a chart of the latencies for each load.
func percentileCharts(r *Report, names []string) (list []figure, err error) {
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
		f := figure{Title: "Latency: " + g.title}
		if len(list) == 0 {
			f.Says = "How long all but the slowest messages took, from when they were to be posted."
		}
		list, err = add(list, f, ninesAxis, latencyAxis, lines, names)
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// loadCharts has charts of latency, cores and processor time by the offered load, if
// there were several.
func loadCharts(r *Report, names []string) (list []figure, err error) {
	var p99, cores, cost []line
	var knees []string
	several, title := false, ""
	for _, name := range names {
		a, b, c := line{name: name}, line{name: name}, line{name: name}
		rows := r.open(name)
		for _, row := range rows {
			title = fmt.Sprintf(" by load, %d bytes, %d outstanding", row.Size, row.Depth)
			if row.Cores.Repeats > 0 {
				b.points = append(b.points, plotter.XY{X: float64(row.Rate), Y: row.Cores.Median})
				c.points = append(c.points, plotter.XY{X: float64(row.Rate), Y: max(1, row.Processor.Median)})
			}
			if ns, ok := row.At(kneePercent); ok {
				a.points = append(a.points, plotter.XY{X: float64(row.Rate), Y: ns})
			}
		}
		if k := knee(rows); k != nil {
			ns, _ := k.At(kneePercent)
			a.mark = plotter.XYs{{X: float64(k.Rate), Y: ns}}
			knees = append(knees, fmt.Sprintf("%s %s", name, k.Rate))
		}
		several = several || len(rows) > 1
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
		{figure{Title: "99th percentile" + title, Says: kneeSays(knees)}, latencyAxis, p99},
		{figure{Title: "Cores in use" + title, Says: "Polling uses a core whether messages come or not; where another line reaches it, sleeping no longer saves one."}, coresAxis, cores},
		{figure{Title: "Processor time of a message" + title, Says: "Of the whole process: post, transfer, delivery, and the consumer's wait if it polls."}, costAxis, cost},
	} {
		if list, err = add(list, f.figure, rateAxis, f.y, f.lines, names); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// open are the rows of a name in open loop, by rate, of the first size, depth and number
// of producers.
func (r *Report) open(name string) (list []*Row) {
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Name != name || !row.Rate.Open() || row.Refused != "" {
			continue
		}
		if s := row.setting(); len(list) == 0 || s.at(0) == list[0].setting().at(0) {
			list = append(list, row)
		}
	}
	slices.SortFunc(list, func(a, b *Row) int { return cmp.Compare(a.Rate, b.Rate) })
	return list
}

// at returns the setting under another rate.
func (s setting) at(rate load.Rate) setting {
	s.rate = rate
	return s
}

// sweep is a chart by one number of the setting, under one rate. The places measured are
// the ticks of its first axis.
type sweep struct {
	figure
	x, y  axis
	rate  load.Rate
	by    func(*setting) *int
	value func(*Row) (float64, bool)
}

func bySize(s *setting) *int      { return &s.size }
func byDepth(s *setting) *int     { return &s.depth }
func byConns(s *setting) *int     { return &s.conns }
func byProducers(s *setting) *int { return &s.producers }

func rowMedian(row *Row) (float64, bool) {
	e, ok := row.Median()
	return e.Median, ok && e.Shape != stats.TwoStates
}

func rowProcessor(row *Row) (float64, bool) { return row.Processor.Median, row.Processor.Median > 0 }
func rowPerSecond(row *Row) (float64, bool) { return row.PerSecond.Median, true }
func rowBytes(row *Row) (float64, bool)     { return row.PerSecond.Median * float64(row.Size), true }

// sweeps are the charts that the kind of the report may have.
func sweeps(r *Report) []sweep {
	const posted = ", as many as can be posted"
	switch first := r.firstRate(); r.Kind {
	case Bandwidth:
		return []sweep{
			{figure{Title: "Bytes in a second by size", Says: "What is carried, by size of a message."}, sizeAxis, bytesAxis, first, bySize, rowBytes},
			{figure{Title: "Bytes in a second by writes outstanding", Says: "How many writes it takes to fill the way."}, depthAxis, bytesAxis, first, byDepth, rowBytes},
			{figure{Title: "Processor time of a message by size", Says: "Of the whole process."}, sizeAxis, costAxis, first, bySize, rowProcessor},
		}
	case Scale:
		return []sweep{
			{figure{Title: "Processor time of a message by connections", Says: "Connections that messages go over in turns leave the caches."}, connsAxis, costAxis, first, byConns, rowProcessor},
			{figure{Title: "Median by connections", Says: "From the post to the consumer."}, connsAxis, latencyAxis, first, byConns, rowMedian},
		}
	default:
		return []sweep{
			{figure{Title: "Median by size, closed loop", Says: "Where the lines meet, the copy costs more than the delivery."}, sizeAxis, latencyAxis, load.Closed, bySize, rowMedian},
			{figure{Title: "Processor time of a message by size, closed loop", Says: "Of the whole process."}, sizeAxis, costAxis, load.Closed, bySize, rowProcessor},
			{figure{Title: "Messages a second by messages outstanding, closed loop", Says: "What is gained by not waiting for each message."}, depthAxis, countAxis, load.Closed, byDepth, rowPerSecond},
			{figure{Title: "Messages a second by producers" + posted, Says: "Goroutines that post on one endpoint."}, producersAxis, countAxis, load.Max, byProducers, rowPerSecond},
			{figure{Title: "Processor time of a message by producers" + posted, Says: "Of the whole process: what producers cost each other."}, producersAxis, costAxis, load.Max, byProducers, rowProcessor},
		}
	}
}

func (r *Report) firstRate() load.Rate {
	if len(r.Rows) == 0 {
		return load.Closed
	}
	return r.Rows[0].Rate
}

// sweepCharts has a chart by each number of which there were several.
func sweepCharts(r *Report, names []string) (list []figure, err error) {
	for _, s := range sweeps(r) {
		if list, err = sweepChart(r, list, s, names); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// sweepChart appends the sweep's chart, unless all rows have one place in it. Of numbers
// that the sweep is not about, it has the first.
func sweepChart(r *Report, list []figure, s sweep, names []string) ([]figure, error) {
	lines := make(map[string]*line)
	var base *setting
	places := map[int]bool{}
	var ticks plot.ConstantTicks
	for i := range r.Rows {
		row := &r.Rows[i]
		y, ok := s.value(row)
		if row.Rate != s.rate || row.Refused != "" || !ok {
			continue
		}
		others := row.setting()
		x := max(*s.by(&others), 1)
		*s.by(&others) = 0
		if base == nil {
			base = &others
		}
		if others != *base {
			continue
		}
		l := lines[row.Name]
		if l == nil {
			l = &line{name: row.Name}
			lines[row.Name] = l
		}
		l.points = append(l.points, plotter.XY{X: float64(x), Y: y})
		if !places[x] {
			places[x] = true
			ticks = append(ticks, plot.Tick{Value: float64(x), Label: strconv.Itoa(x)})
		}
	}
	if len(places) < 2 {
		return list, nil
	}
	var all []line
	for _, name := range names {
		if l := lines[name]; l != nil {
			slices.SortFunc(l.points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
			all = append(all, *l)
		}
	}
	s.x.ticks = ticks
	return add(list, s.figure, s.x, s.y, all, names)
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
