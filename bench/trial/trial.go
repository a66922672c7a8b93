// Package trial measures lanes under loads by turns, and draws a report from it.
package trial

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"godat/bench/host"
	"godat/bench/lane"
	"godat/bench/load"
	"godat/bench/report"
	"godat/bench/stats"
)

// Entry is a lane under a load. What its row says of itself is set; a trial adds the
// figures.
type Entry struct {
	Row report.Row
	// Open makes the lane, which the trial closes. Entries with the same key share one.
	Key  string
	Open func() (lane.Lane, error)
	// Start, if set, takes the place of Open: it makes what another program measures.
	Start func() (Runner, error)
}

// Runner measures turns. A Refusal by Start or Run refuses the row, and the others go on.
type Runner interface {
	// Refuse says why it can't measure a load; nil if it can.
	Refuse(load.Load) error
	Run(load.Load) (load.Result, error)
	Close() error
}

// start makes what measures the entry.
func (e *Entry) start() (Runner, error) {
	if e.Start != nil {
		return e.Start()
	}
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

// Tolerance is how much longer than the quickest a probe may take, if the repeat beside
// it is to count.
const Tolerance = 2.0

// contender is an entry while it is measured.
type contender struct {
	Entry
	runner  Runner
	results []load.Result
	probes  []float64
	starved []bool // by repeat: the probe beside it did not get the processor that it wanted
}

// Run makes all entries take turns: each repeat measures each of them once, so that a
// machine that becomes slower in the middle changes all. Repeats that something
// disturbed are dropped, and an entry that too few are left of is refused.
func (p Plan) Run() (rows []report.Row, err error) {
	runners := map[string]Runner{}
	defer func() {
		for _, r := range runners {
			if closeErr := r.Close(); err == nil {
				err = closeErr
			}
		}
	}()
	var list []*contender
	for _, e := range p.Entries {
		c := &contender{Entry: e, runner: runners[e.Key]}
		list = append(list, c)
		if c.runner == nil {
			if c.runner, err = e.start(); err != nil {
				if err = c.refuse(err); err != nil {
					return nil, err
				}
				continue
			}
			runners[e.Key] = c.runner
		}
		if why := c.runner.Refuse(p.load(&c.Row)); why != nil {
			c.Row.Refused = why.Error()
		}
	}
	if err := p.measure(list); err != nil {
		return nil, err
	}
	var probes []float64
	for _, c := range list {
		probes = append(probes, c.probes...)
	}
	for _, c := range list {
		if c.Row.Refused == "" {
			c.conclude(probes)
		}
		rows = append(rows, c.Row)
	}
	return rows, nil
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
		_, err := c.runner.Run(ld)
		return err
	}
	probe := p.probe
	if probe == nil {
		probe = probeMachine
	}
	before, starvedBefore := probe()
	res, err := c.runner.Run(ld)
	if err != nil {
		return err
	}
	after, starvedAfter := probe()
	c.results = append(c.results, res)
	c.probes = append(c.probes, max(before, after))
	c.starved = append(c.starved, starvedBefore || starvedAfter)
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

// conclude draws the row's figures from the repeats. all has the probes of all entries.
func (c *contender) conclude(all []float64) {
	r := &c.Row
	limit := Tolerance * slices.Min(all)
	var kept []load.Result
	for i, res := range c.results {
		disturbed := c.probes[i] > limit || i < len(c.starved) && c.starved[i]
		if !disturbed {
			kept = append(kept, res)
		}
		r.Samples = append(r.Samples, sample(res, c.probes[i], disturbed))
	}
	r.Kept, r.Dropped = len(kept), len(c.results)-len(kept)
	if 2*r.Kept < len(c.results) || r.Kept == 0 {
		r.Refused = fmt.Sprintf("something else used the processors during %d of %d repeats", r.Dropped, len(c.results))
		return
	}
	figures(r, kept)
}

func sample(res load.Result, probe float64, dropped bool) report.Sample {
	s := report.Sample{
		Count: res.Count, Took: res.Took, P50: int64(res.Median),
		Processor: res.Processor, Pacing: res.Pacing, Probe: time.Duration(probe), Dropped: dropped,
	}
	if res.Latency != nil {
		s.P50, s.P99 = res.Latency.ValueAtQuantile(50), res.Latency.ValueAtQuantile(99)
	}
	return s
}

// fewest is the least number of messages of a repeat.
func fewest(results []load.Result) int64 {
	return slices.MinFunc(results, func(a, b load.Result) int { return cmp.Compare(a.Count, b.Count) }).Count
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
	saturated := 0
	for _, res := range kept {
		if res.Saturated {
			saturated++
		}
	}
	r.Saturated = 2*saturated > len(kept)
	count := func(res load.Result) float64 { return float64(max(res.Count, 1)) }
	r.PerSecond = estimate(func(res load.Result) float64 { return float64(res.Count) / res.Took.Seconds() })
	r.Allocs = estimate(func(res load.Result) float64 {
		if res.Allocs < 0 {
			return -1
		}
		return math.Round(100*float64(res.Allocs)/count(res)) / 100
	})
	if _, known := host.ProcessorTime(); known {
		r.Processor = estimate(func(res load.Result) float64 { return float64(res.Processor) / count(res) })
		r.Cores = estimate(func(res load.Result) float64 { return res.Processor.Seconds() / res.Took.Seconds() })
	}
	if kept[0].Latency == nil {
		told(r, estimate)
	} else {
		latencies(r, kept, estimate)
	}
}

// estimator estimates a figure of the repeats that count.
type estimator func(func(load.Result) float64) stats.Estimate

// told takes over the latencies of a program that tells its own.
func told(r *report.Row, estimate estimator) {
	r.Mean = estimate(func(res load.Result) float64 { return float64(res.Mean) }).Median
	if p50 := estimate(func(res load.Result) float64 { return float64(res.Median) }); p50.Median > 0 {
		r.Latency = []report.Percentile{{Percent: 50, NS: p50}}
	}
}

// latencies estimates the latencies from histograms.
func latencies(r *report.Row, kept []load.Result, estimate estimator) {
	total := kept[0].Latency.Clone()
	for i, res := range kept {
		r.Lag = max(r.Lag, float64(res.Lag.ValueAtQuantile(99)))
		if i > 0 {
			total.Merge(res.Latency)
		}
	}
	if r.Saturated {
		return
	}
	r.Min, r.Max, r.Mean, r.StdDev = float64(total.Min()), float64(total.Max()), total.Mean(), total.StdDev()
	for _, percent := range report.Percents {
		if beyond := math.Round(float64(fewest(kept)) * (100 - percent)); beyond < 100 {
			break // not one message of a repeat is beyond it
		}
		at := estimate(func(res load.Result) float64 { return float64(res.Latency.ValueAtQuantile(percent)) })
		at.Low -= load.Width(at.Low)
		r.Latency = append(r.Latency, report.Percentile{Percent: percent, NS: at})
	}
	for _, b := range total.CumulativeDistributionWithTicks(5) {
		r.Curve = append(r.Curve, report.Point{Percent: b.Quantile, NS: b.ValueAt, Count: b.Count})
	}
}
