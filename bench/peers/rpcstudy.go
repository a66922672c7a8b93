package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"godat/bench/host"
	"godat/bench/stats"
)

// study compares calls of runtime/rpc with those of others: for each length of a request and
// each number of callers, all services take turns.
type study struct {
	sizes, callers numbers
	repeats        int
	duration       time.Duration // of one turn
	only           string        // what the names of the services contain
	out            io.Writer
	failed         []string // targets that were missed
}

// errMissed says that this machine has missed a target.
var errMissed = errors.New("missed")

// numbers are positive numbers, as a flag has them: 64,4096.
type numbers []int

func (n *numbers) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int(*n)), " ", ","), "[]")
}

// Set implements flag.Value.
func (n *numbers) Set(text string) error {
	*n = nil
	for part := range strings.SplitSeq(text, ",") {
		v, err := strconv.Atoi(part)
		if err != nil || v < 1 || v > 16<<20 {
			return fmt.Errorf("%q: from 1 to %d", part, 16<<20)
		}
		*n = append(*n, v)
	}
	return nil
}

// runStudy is the command rpc.
func runStudy(args []string, out io.Writer) error {
	s := study{sizes: numbers{64, 4 << 10, 64 << 10, 1 << 20}, callers: numbers{1, 16, 256}, out: out}
	f := flag.NewFlagSet("rpc", flag.ContinueOnError)
	f.SetOutput(out)
	f.Var(&s.sizes, "size", "bytes of a request")
	f.Var(&s.callers, "callers", "goroutines that call, each one call after the other")
	f.IntVar(&s.repeats, "repeats", 9, "how often all take turns")
	f.DurationVar(&s.duration, "duration", 200*time.Millisecond, "how long one turn is")
	f.StringVar(&s.only, "only", "", "measure only the services whose name contains this")
	if err := f.Parse(args); err != nil {
		return err
	}
	if s.repeats < 1 || s.duration <= 0 {
		return errors.New("at least one repeat, and a duration")
	}
	fmt.Fprintf(out, "Calls with a request of each size, and an answer of 8 bytes. Both ends are in one process, on the loopback.\n%s\n%d repeats of %v, GOMAXPROCS=%d\n",
		host.Describe(), s.repeats, s.duration, runtime.GOMAXPROCS(0))
	for _, size := range s.sizes {
		for _, callers := range s.callers {
			if err := s.compare(size, callers); err != nil {
				return err
			}
		}
	}
	if len(s.failed) > 0 {
		return fmt.Errorf("%w: %s", errMissed, strings.Join(s.failed, "; "))
	}
	return nil
}

// contender is a service while it is measured.
type contender struct {
	service
	site      site
	close     func() error // closes the site; further calls return the same
	refused   error        // why there are no figures
	rate      []float64    // calls in a second, by repeat
	processor []float64    // nanoseconds of a call, of both ends; negative if unknown
	p50       []float64    // nanoseconds
	all       *hdrhistogram.Histogram
}

// compare lets all services take turns with one kind of call, and prints a table.
func (s *study) compare(size, callers int) (err error) {
	list := make(map[string]*contender)
	var order []*contender
	defer func() {
		for _, c := range order {
			if closed := c.close(); c.refused == nil {
				err = errors.Join(err, closed)
			}
		}
	}()
	for _, of := range services {
		if !strings.Contains(of.name, s.only) || of.most != 0 && (callers > 1 || size > of.most) {
			continue
		}
		c := &contender{service: of, all: newHistogram()}
		if c.site, err = of.open(size, callers); err != nil {
			return fmt.Errorf("%s: %w", of.name, err)
		}
		c.close = sync.OnceValue(c.site.close)
		list[of.name], order = c, append(order, c)
	}
	for repeat := -1; repeat < s.repeats; repeat++ { // the first turns warm up
		for _, c := range order {
			if c.refused == nil {
				c.refused = c.turn(callers, s.duration, repeat >= 0)
			}
		}
	}
	s.print(size, callers, order)
	s.judge(size, callers, list)
	return nil
}

// print prints the table of a kind of call.
func (s *study) print(size, callers int, list []*contender) {
	fmt.Fprintf(s.out, "\n%d bytes, %d callers\n", size, callers)
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tcalls/s\tlow–high\tp50\tlow–high\tp99 of all\tprocessor\tlow–high\t")
	for _, c := range list {
		if c.refused != nil {
			fmt.Fprintf(w, "%s\trefused: %v\n", c.name, c.refused)
			continue
		}
		p99 := "–"
		if c.all.TotalCount() >= beyond*100 { // so many are beyond it
			p99 = show(float64(c.all.ValueAtQuantile(99)))
		}
		rate, p50, processor := stats.Of(c.rate), stats.Of(c.p50), stats.Of(c.processor)
		fmt.Fprintf(w, "%s\t%.0f\t%.0f–%.0f\t%s\t%s\t%s\t%s\t%s\t%s\n", c.name, rate.Median, rate.Low, rate.High,
			show(p50.Median), between(p50), p99, show(processor.Median), between(processor), doubt(rate))
	}
	_ = w.Flush() // of what goes to standard output
}

// beyond is how many calls lie beyond a percentile that is told.
const beyond = 100

func show(ns float64) string {
	if ns < 0 {
		return "?"
	}
	digits := time.Duration(1)
	for 1000*digits <= time.Duration(ns) { // three are shown
		digits *= 10
	}
	return time.Duration(ns).Round(digits).String()
}

func between(e stats.Estimate) string { return show(e.Low) + "–" + show(e.High) }

// doubt marks a row whose repeats don't agree.
func doubt(e stats.Estimate) string {
	if e.Sure && e.Steady() {
		return ""
	}
	return "unsteady"
}

// target bounds a ratio of two services.
type target struct {
	what    string
	size    int
	callers int // 0: any
	a, b    string
	figure  func(c *contender) []float64
	atLeast bool
	bound   float64
}

func rateOf(c *contender) []float64      { return c.rate }
func processorOf(c *contender) []float64 { return c.processor }

var targets = []target{
	{"processor time", 64, 0, overIWARP, overGRPC, processorOf, false, 0.5},
	{"processor time", 1 << 20, 0, overIWARP, overGRPC, processorOf, false, 0.6},
	{"rate", 64, 0, overIWARP, overGRPC, rateOf, true, 2},
	{"rate", 1 << 20, 0, overIWARP, overGRPC, rateOf, true, 2},
	{"rate", 64, 1, overLoop, connOverLoop, rateOf, true, 1 / 2.5},
}

// judge prints the targets of a kind of call, by ratios of the same repeat.
func (s *study) judge(size, callers int, list map[string]*contender) {
	for _, t := range targets {
		a, b := list[t.a], list[t.b]
		if t.size != size || t.callers != 0 && t.callers != callers || a == nil || b == nil || a.refused != nil || b.refused != nil {
			continue
		}
		var ratios []float64
		for i, of := range t.figure(b) {
			ratios = append(ratios, t.figure(a)[i]/of)
		}
		got := stats.Of(ratios)
		sign, verdict := "≤", "met"
		missed := got.Median > t.bound
		if t.atLeast {
			sign, missed = "≥", got.Median < t.bound
		}
		switch {
		case !got.Sure:
			verdict = "not told: too few repeats"
		case missed:
			verdict = "missed"
			s.failed = append(s.failed, fmt.Sprintf("%s of %d bytes, %d callers", t.what, size, callers))
		}
		fmt.Fprintf(s.out, "%s, %s / %s: %.2f (%.2f–%.2f), %s %.2f: %s\n", t.what, t.a, t.b, got.Median, got.Low, got.High, sign, t.bound, verdict)
	}
}
