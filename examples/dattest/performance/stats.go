package performance

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"godat/examples/dattest/wire"
)

// Durations sums up how long the operations of one kind took.
type Durations struct {
	N               int
	Total, Min, Max time.Duration
}

func (d *Durations) add(t time.Duration) {
	if d.N == 0 || t < d.Min {
		d.Min = t
	}
	d.Max = max(d.Max, t)
	d.Total += t
	d.N++
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// Mean is the arithmetic mean in µs.
func (d *Durations) Mean() float64 { return micros(d.Total) / float64(max(1, d.N)) }

func (d *Durations) print(w io.Writer) {
	fmt.Fprintf(w, "    Arithmetic mean      : %.2f us\n    maximum              : %.2f us\n    minimum              : %.2f us\n",
		d.Mean(), micros(d.Max), micros(d.Min))
}

// Stats are what a client has measured.
type Stats struct {
	test                *wire.Performance
	pipeline            int
	Ops                 int
	Time                time.Duration
	CPU                 float64 // percent of the time of all the machine's processors
	Latency, Post, Reap Durations
}

func newStats(t *wire.Performance, pipeline int) *Stats { return &Stats{test: t, pipeline: pipeline} }

// Print prints what dapltest prints, in the same order. It has one line for posts and
// one for reaps, because it does not count context switches.
func (s *Stats) Print(w io.Writer) {
	mode := "blocking"
	if s.test.Poll {
		mode = "polling"
	}
	o := s.test.Op
	seconds := max(s.Time.Seconds(), 1e-9)
	mb := float64(s.Ops) * float64(o.Bytes()) / (1 << 20)
	ops, bandwidth := float64(s.Ops)/seconds, mb/seconds
	fmt.Fprintf(w, "------------------------- Statistics -------------------------\n")
	fmt.Fprintf(w, "    Mode                 : %s\n    Operation Type       : %v\n    Number of Operations : %d\n", mode, o.Transfer.Short(), s.Ops)
	fmt.Fprintf(w, "    Segment Size         : %d\n    Number of Segments   : %d \n    Pipeline Length      : %d\n\n", o.Size, o.Segments, s.pipeline)
	fmt.Fprintf(w, "    Total Time           : %.2f sec\n    Total Data Exchanged : %.2f MB\n    CPU Utilization      : %.2f\n", seconds, mb, s.CPU)
	fmt.Fprintf(w, "    Operation Throughput : %.2f ops/sec\n    Bandwidth            : %.2f MB/sec\n", ops, bandwidth)
	fmt.Fprintf(w, "\nLatency\n")
	s.Latency.print(w)
	fmt.Fprintf(w, "\nTime Per Post\n    %d posts\n", s.Post.N)
	s.Post.print(w)
	fmt.Fprintf(w, "\nTime Per Reap\n    %d reaps\n", s.Reap.N)
	s.Reap.print(w)
	fmt.Fprintf(w, "\nNOTE: 1 MB = 1024 KB = 1048576 B \n%s\n", rule)
	fmt.Fprintf(w, "raw: %v, %d, %d, %d, %d, %.2f, %.2f, %.2f, %.2f, %.2f, %.2f \n%s\n", o.Transfer.Short(), s.Ops, o.Size, o.Segments, s.pipeline,
		s.CPU, ops, bandwidth, s.Latency.Mean(), s.Post.Mean(), s.Reap.Mean(), rule)
}

const rule = "---------------------------------------------------------------------"

// cpu is the time that the machine's processors have spent, in clock ticks.
type cpu struct{ busy, all float64 }

// cpuTime reads cpu where the system has it, and is zero elsewhere.
func cpuTime() (c cpu) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return c
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	for i, field := range bytes.Fields(line) {
		n, _ := strconv.ParseFloat(string(field), 64)
		if i == 0 || i > 4 {
			continue
		}
		c.all += n
		if i != 4 { // idle
			c.busy += n
		}
	}
	return c
}

func (c cpu) utilization(later cpu) float64 {
	if later.all == c.all {
		return 0
	}
	return 100 * (later.busy - c.busy) / (later.all - c.all)
}
