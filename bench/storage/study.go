package storage

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"godat/bench/host"
	"godat/bench/load"
	"godat/bench/report"
	"godat/bench/stats"
)

// Study lets all rows take turns at all places. In each turn the processes of a row start anew, so
// that nothing of a row goes on beside another, and run all loads, idle first.
type Study struct {
	Places   []Place
	Host     string // at which targets listen
	Rates    []load.Rate
	Depths   []int
	Repeats  int
	Duration time.Duration // of one load; idle takes more
	Command  []string      // starts an end
	Line     string        // what repeats the study
	Step     func(done, all int)
	Watch    func() host.Disturbed
	Counts   bool // alone mean something: Linux's own target takes part, too

	rows             []Row // rows(), but in tests
	turns, disturbed int
	again            int // turns that ran another loop than their rows name
	cells            []*cell
	at               map[key]*cell
}

// key names a cell.
type key struct {
	place Place
	row   string
	load  Load
}

// cell is a row under a load at a place.
type cell struct {
	key
	samples []sample
	latency *hdrhistogram.Histogram // of all turns
	refused error                   // why there are no figures
}

// Run measures.
func (s *Study) Run(ctx context.Context) error {
	if s.rows == nil {
		s.rows = rows()
		if s.Counts {
			s.rows = append(slices.DeleteFunc(s.rows, func(r Row) bool { return r.Name == pacing }), kernelRow)
		}
	}
	list := loads(s.Rates, s.Depths)
	s.at = map[key]*cell{}
	type contender struct {
		place Place
		row   Row
	}
	var all []contender
	for _, p := range s.Places {
		for _, r := range s.rows {
			if !p.has(r) {
				continue
			}
			all = append(all, contender{p, r})
			for _, l := range list {
				c := &cell{key: key{p, r.Name, l}, latency: newHistogram()}
				s.cells, s.at[c.key] = append(s.cells, c), c
			}
		}
	}
	for repeat := range s.Repeats {
		for i := range all {
			c := all[(i+repeat)%len(all)] // each is once first
			if err := s.turn(ctx, c.place, c.row, list); err != nil {
				return err
			}
			if s.Step != nil {
				s.Step(repeat*len(all)+i+1, s.Repeats*len(all))
			}
		}
	}
	return nil
}

// turn runs all loads with a row. What fails refuses the row's cells, and others go on.
func (s *Study) turn(ctx context.Context, place Place, row Row, list []Load) error {
	refuse := func(why error) {
		for _, l := range list {
			if c := s.at[key{place, row.Name, l}]; c.refused == nil {
				c.refused = why
			}
		}
	}
	if s.at[key{place, row.Name, list[0]}].refused != nil {
		return nil
	}
	depth := 1
	for _, d := range s.Depths {
		depth = max(depth, d)
	}
	p, err := open(ctx, s.Command, place, row, s.Host, depth)
	if err != nil {
		refuse(err)
		return context.Cause(ctx)
	}
	_, err = p.turn(list[len(list)-1], s.Duration/2) // warms up
	if s.Counts && isUnproven(err) {
		err = nil
	}
	for _, l := range list {
		if c := s.at[key{place, row.Name, l}]; err == nil && c.refused == nil {
			if err = s.measure(p, c); s.Counts && isUnproven(err) {
				c.refused, err = err, nil
			}
		}
	}
	if err != nil {
		refuse(err)
		p.Kill()
		return context.Cause(ctx)
	}
	if err := p.Close(order{Do: doClose}); err != nil {
		refuse(err)
	}
	return context.Cause(ctx)
}

// mostTimes is how often a turn is taken until it proves its row: a loop that polls, and is kept from its
// processor for a while, loses the device, which then sleeps. In vain, the row is refused, and of counts at that
// load alone.
const mostTimes = 3

// take takes a turn.
func (s *Study) take(p *pair, l Load, duration time.Duration) (t sample, err error) {
	for range mostTimes {
		t, err = p.turn(l, duration)
		if !isUnproven(err) {
			return t, err
		}
		s.again++
	}
	return t, err
}

// measure measures a cell once.
func (s *Study) measure(p *pair, c *cell) error {
	disturbed := s.Watch()
	t, err := s.take(p, c.load, c.load.takes(s.Duration))
	if err != nil {
		return err
	}
	s.turns++
	if disturbed(t.used() + t.Pacing) {
		s.disturbed++
	}
	if !c.load.Idle {
		h, err := hdrhistogram.Decode([]byte(t.Latency))
		if err != nil {
			return err
		}
		c.latency.Merge(h)
		t.p50 = float64(h.ValueAtQuantile(50))
	}
	c.samples = append(c.samples, t)
	return nil
}

// Refused are the rows that have no figures, and why. A row that has no counts of some loads is none.
func (s *Study) Refused() (list []string) {
	told := map[string]bool{}
	for _, c := range s.cells {
		if c.refused == nil || s.Counts && isUnproven(c.refused) {
			continue
		}
		text := fmt.Sprintf("%s at %v: %v", c.row, c.place, c.refused)
		if !told[text] {
			told[text], list = true, append(list, text)
		}
	}
	return list
}

// Busy says why the figures mean nothing; it is empty if they do not.
func (s *Study) Busy() string {
	if !s.Counts && 2*s.disturbed > s.turns {
		return fmt.Sprintf("other programs used over a quarter of the processors during %d of %d turns", s.disturbed, s.turns)
	}
	return ""
}

// measured are the cells of rows under a load at a place; nil if one of them has no figures.
func (s *Study) measured(p Place, l Load, rows ...string) (list []*cell) {
	for _, row := range rows {
		c := s.at[key{p, row, l}]
		if c == nil || c.refused != nil {
			return nil
		}
		list = append(list, c)
	}
	return list
}

// Below are a cell's figures, each for the turns of the cell in order.

func (c *cell) each(f func(*sample) float64) (values []float64) {
	for i := range c.samples {
		values = append(values, f(&c.samples[i]))
	}
	return values
}

func (c *cell) iops() []float64 {
	return c.each(func(s *sample) float64 { return float64(s.Count) / s.Took.Seconds() })
}

// processor is the processor time of both ends for each command, in nanoseconds.
func (c *cell) processor() []float64 {
	return c.each(func(s *sample) float64 { return float64(s.used()) / float64(max(1, s.Count)) })
}

// share is the part of a core that the cell took, in percent.
func (c *cell) share() []float64 {
	return c.each(func(s *sample) float64 { return 100 * s.used().Seconds() / s.Took.Seconds() })
}

// own is the median latency from when commands began, whatever the pacer's lag.
func (c *cell) own() []float64 {
	return c.each(func(s *sample) float64 { return float64(s.OwnP50) })
}

func (c *cell) p50() []float64 { return c.each(func(s *sample) float64 { return s.p50 }) }

// saturated reports whether the cell did less than it was asked for in most turns.
func (c *cell) saturated() bool { return 2*c.behind() > len(c.samples) }

// behind is in how many turns the cell did less than it was asked for.
func (c *cell) behind() (n int) {
	for i := range c.samples {
		if c.samples[i].Saturated {
			n++
		}
	}
	return n
}

func (c *cell) known() bool {
	for i := range c.samples {
		if !c.samples[i].known {
			return false
		}
	}
	return len(c.samples) > 0
}

// WriteLogs writes the latencies of all turns of each cell as an HdrHistogram log.
func (s *Study) WriteLogs(w io.Writer) error {
	log, err := report.NewLog(w, fmt.Sprintf("%s; nanoseconds from the intended time; %s", s.Line, host.Describe()))
	if err != nil {
		return err
	}
	for _, c := range s.cells {
		if c.load.Idle || c.latency.TotalCount() == 0 {
			continue
		}
		c.latency.SetTag(tag(c.key))
		if err := log.OutputIntervalHistogram(c.latency); err != nil {
			return err
		}
	}
	return nil
}

// tag names a cell in a log, whose tags have neither spaces nor commas.
func tag(k key) string {
	return fmt.Sprintf("%s/%d/%s/%s/%d/%s", k.place.Provider, k.place.Processors, k.row, k.load.op(), k.load.Depth, k.load.rate())
}

func median(values []float64) float64 { return stats.Of(values).Median }
