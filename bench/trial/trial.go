// Package trial measures lanes under loads by turns, and draws a report from it.
package trial

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"godat/bench/host"
	"godat/bench/lane"
	"godat/bench/load"
	"godat/bench/mode"
	"godat/bench/report"
	"godat/bench/stats"
)

// Entry is a lane under a load. What its row says of itself is set; a trial adds the
// figures.
type Entry struct {
	Row report.Row
	// Open makes the lane, which the trial closes. Entries with the same key share one.
	Key  string
	Open func() (lane.Lane, error) // a Refusal refuses the row, and the others go on
}

// OrRefusal makes the error of a lane that can't be opened a refusal of its rows.
func OrRefusal(l lane.Lane, err error) (lane.Lane, error) {
	if err != nil {
		return nil, load.Refusal(err.Error())
	}
	return l, nil
}

// driver opens the lane.
func (e *Entry) driver() (*load.Driver, error) {
	l, err := e.Open()
	if err != nil {
		return nil, err
	}
	return load.NewDriver(l, max(e.Row.Producers, 1)), nil
}

// Plan is what a trial measures.
type Plan struct {
	Entries  []Entry
	Repeats  int
	Duration time.Duration // of one repeat of one entry
	// Step, if set, is called after each repeat of each entry.
	Step func()

	// probe, if set, takes the place of the probe of the machine.
	probe func() (took float64, starved bool)
}

// Takes is about how long the trial takes: beside each turn the machine is probed.
func (p Plan) Takes() time.Duration {
	const beside = 15 * time.Millisecond
	return (time.Duration(len(p.Entries)*p.Repeats) * (p.Duration + beside)).Round(time.Second)
}

// Tolerance is how much longer than the quickest a probe may take, if the repeat beside
// it is to count.
const Tolerance = 2.0

// contender is an entry while it is measured.
type contender struct {
	Entry
	driver *load.Driver
	turns  []turn
}

// turn is one repeat of an entry, and the probes beside it.
type turn struct {
	load.Result
	start   time.Time
	probe   float64 // the longer of two, in nanoseconds
	starved bool    // a probe did not get the processor that it wanted
}

// Run makes all entries take turns: each repeat measures each of them once, so that a
// machine that becomes slower in the middle changes all. Repeats that something
// disturbed are dropped, and an entry that too few are left of is refused.
func (p Plan) Run() (rows []report.Row, err error) {
	drivers := map[string]*load.Driver{}
	defer func() {
		for _, d := range drivers {
			if closeErr := d.Close(); err == nil {
				err = closeErr
			}
		}
	}()
	var list []*contender
	for _, e := range p.Entries {
		c := &contender{Entry: e, driver: drivers[e.Key]}
		list = append(list, c)
		if c.driver == nil {
			if c.driver, err = e.driver(); err != nil {
				if err = c.refuse(err); err != nil {
					return nil, err
				}
				continue
			}
			drivers[e.Key] = c.driver
		}
		if why := c.driver.Refuse(p.load(&c.Row)); why != nil {
			c.Row.Refused = why.Error()
		}
	}
	if err := p.measure(list); err != nil {
		return nil, err
	}
	if err := prove(list); err != nil {
		return nil, err
	}
	quickest := math.Inf(1)
	for _, c := range list {
		for _, t := range c.turns {
			quickest = min(quickest, t.probe)
		}
	}
	for _, c := range list {
		if c.Row.Refused == "" {
			if err := c.conclude(quickest); err != nil {
				return nil, err
			}
		}
		rows = append(rows, c.Row)
	}
	return rows, nil
}

// prove is an error if another loop took a row's messages than that of its name: its figures would be another row's.
func prove(list []*contender) error {
	for _, c := range list {
		if c.Row.Refused != "" {
			continue
		}
		name, _, _ := strings.Cut(c.Row.Name, " over ") // an adapter, among peers
		if loop := c.driver.Loop(); loop != "" && loop != name {
			return fmt.Errorf("the row %q is not what ran: its loop was %q", c.Row.Name, loop)
		}
	}
	return nil
}

// refuse refuses the row if err is a refusal, and otherwise returns err with the row's
// name.
func (c *contender) refuse(err error) error {
	var refusal load.Refusal
	if errors.As(err, &refusal) {
		c.Row.Refused = err.Error()
		return nil
	}
	return fmt.Errorf("%s: %w", c.Row.Name, err)
}

func (p Plan) load(r *report.Row) load.Load {
	return load.Load{Rate: r.Rate, Depth: r.Depth, Duration: p.Duration}
}

// measure runs the repeats. The turns before the first warm caches up, and don't count.
func (p Plan) measure(list []*contender) error {
	for repeat := -1; repeat < p.Repeats; repeat++ {
		for _, c := range list {
			if c.Row.Refused == "" {
				if err := p.turn(c, repeat < 0); err != nil {
					if err = c.refuse(err); err != nil {
						return err
					}
				}
			}
			if p.Step != nil {
				p.Step()
			}
		}
	}
	return nil
}

// turn measures one entry once.
func (p Plan) turn(c *contender, warming bool) error {
	ld := p.load(&c.Row)
	if warming {
		ld.Duration /= 10
		_, err := c.driver.Run(ld)
		return err
	}
	probe := p.probe
	if probe == nil {
		probe = probeMachine
	}
	before, starvedBefore := probe()
	start := time.Now()
	res, err := c.driver.Run(ld)
	if err != nil {
		return err
	}
	after, starvedAfter := probe()
	c.turns = append(c.turns, turn{res, start, max(before, after), starvedBefore || starvedAfter})
	return nil
}

// probeMachine is how long work takes, in nanoseconds, that is always the same: events through
// a channel, by one goroutine. Something else on the machine makes it take longer, or, if
// that lasts for the whole run, keeps the processor from it: it is starved if it took
// over 1.5 times the processor time that the system counts for it.
func probeMachine() (took float64, starved bool) {
	ch := make(chan [7]uint64, 64)
	used, _ := host.ProcessorTime()
	start := time.Now()
	for range 1000 {
		for range cap(ch) {
			ch <- [7]uint64{}
		}
		for range cap(ch) {
			<-ch
		}
	}
	wall := time.Since(start)
	now, known := host.ProcessorTime()
	return float64(wall), known && 2*wall > 3*(now-used)
}

// conclude draws the row's figures from the repeats. quickest is the quickest probe of all.
func (c *contender) conclude(quickest float64) error {
	r := &c.Row
	var kept []load.Result
	for _, t := range c.turns {
		disturbed := t.starved || t.probe > Tolerance*quickest
		if !disturbed {
			kept = append(kept, t.Result)
		}
		s, err := t.sample(disturbed)
		if err != nil {
			return err
		}
		r.Samples = append(r.Samples, s)
	}
	r.Kept, r.Dropped = len(kept), len(c.turns)-len(kept)
	if 2*r.Kept < len(c.turns) || r.Kept == 0 {
		r.Refused = fmt.Sprintf("something else used the processors during %d of %d repeats", r.Dropped, len(c.turns))
		return nil
	}
	figures(r, kept)
	if name, _, _ := strings.Cut(r.Name, " over "); (name == mode.Poll.Name || name == lane.RawRing) && r.Rate.Open() && !r.Saturated && r.Cores.Repeats > 0 && r.Cores.Median < leastCores {
		r.Refused = fmt.Sprintf("a consumer that polls uses a processor, and this one had %.2f of it: other programs had the rest", r.Cores.Median)
		r.Kept, r.Dropped = 0, len(c.turns)
	}
	return nil
}

// leastCores is what a consumer that polls uses at least: it never rests.
const leastCores = 0.9

// sample is the repeat as the report keeps it.
func (t *turn) sample(dropped bool) (s report.Sample, err error) {
	s = report.Sample{
		Start: t.start, Count: t.Count, Took: t.Took, P50: t.Latency.ValueAtQuantile(50), Processor: t.Processor,
		Dropped: dropped,
	}
	if report.Enough(t.Count, 99) {
		s.P99 = t.Latency.ValueAtQuantile(99)
	}
	s.Histogram, err = report.Encode(t.Latency)
	return s, err
}

// figures estimates the row's figures from the repeats that count.
func figures(r *report.Row, kept []load.Result) {
	estimate := func(f func(load.Result) float64) stats.Estimate {
		var values []float64
		for _, res := range kept {
			values = append(values, f(res))
		}
		return stats.Of(values)
	}
	saturated, unknown := 0, false
	for _, res := range kept {
		if res.Saturated {
			saturated++
		}
		unknown = unknown || res.Processor < 0
	}
	r.Saturated = 2*saturated > len(kept)
	count := func(res load.Result) float64 { return float64(max(res.Count, 1)) }
	r.PerSecond = estimate(func(res load.Result) float64 { return float64(res.Count) / res.Took.Seconds() })
	r.Allocs = estimate(func(res load.Result) float64 { return math.Round(100*float64(res.Allocs)/count(res)) / 100 })
	if !unknown {
		r.Processor = estimate(func(res load.Result) float64 { return float64(res.Processor) / count(res) })
		r.Cores = estimate(func(res load.Result) float64 { return res.Processor.Seconds() / res.Took.Seconds() })
	}
	latencies(r, kept, estimate)
}

// estimator estimates a figure of the repeats that count.
type estimator func(func(load.Result) float64) stats.Estimate

// latencies estimates the latencies from histograms: each percentile of all messages
// together, in which a repeat that stalled counts as what it is, and that of each repeat,
// which tells whether the repeats agree.
func latencies(r *report.Row, kept []load.Result, estimate estimator) {
	total, fewest := kept[0].Latency.Clone(), kept[0].Count
	for i, res := range kept {
		fewest = min(fewest, res.Count)
		if i > 0 {
			total.Merge(res.Latency)
		}
	}
	if r.Saturated {
		return
	}
	r.Max = float64(total.Max())
	for _, percent := range report.Percents {
		if !report.Enough(total.TotalCount(), percent) {
			break
		}
		p := report.Percentile{Percent: percent, NS: float64(total.ValueAtQuantile(percent))}
		if report.Enough(fewest, percent) {
			p.Repeats = estimate(func(res load.Result) float64 { return float64(res.Latency.ValueAtQuantile(percent)) })
			p.Repeats.Low -= load.Width(p.Repeats.Low)
		}
		r.Latency = append(r.Latency, p)
	}
}
