package storage

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"godat/bench/load"
	"godat/bench/report"
	"godat/examples/nvmeof/plain"
)

// book keeps when the commands of a turn were to begin, and how long each took from then on. One
// goroutine begins commands and one, which may be another, ends them.
type book struct {
	Load
	base   time.Time
	period time.Duration // between two intended times; 0 of a load that is closed
	total  int64         // commands of an open load
	until  time.Duration // of a closed one
	blocks int64
	random *rand.Rand
	due    []atomic.Int64 // by slot: when its command was to begin, since base
	since  []atomic.Int64 // by slot: when it began

	block   []int64 // by slot
	begun   int64
	lag     *hdrhistogram.Histogram
	ended   int64
	last    time.Duration
	latency *hdrhistogram.Histogram // from the intended time
	own     *hdrhistogram.Histogram // from the beginning
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Minute), 2) }

func newBook(l Load, duration time.Duration, slots, blocks int) *book {
	b := &book{
		Load: l, until: duration, blocks: int64(blocks), random: rand.New(rand.NewPCG(1, uint64(l.Depth))),
		due: make([]atomic.Int64, slots), since: make([]atomic.Int64, slots), block: make([]int64, slots), lag: newHistogram(), latency: newHistogram(), own: newHistogram(), base: time.Now(),
	}
	if l.Rate.Open() {
		b.period = time.Duration(float64(time.Second) / float64(l.Rate))
		b.total = max(1, int64(duration/b.period))
	}
	return b
}

// closed reports whether a command is followed by the next.
func (b *book) closed() bool { return b.Rate == load.Closed }

// over reports whether no further command is to begin. An open load that is far behind ends, too.
func (b *book) over() bool {
	if b.closed() {
		return time.Since(b.base) >= b.until
	}
	return b.begun == b.total || b.begun > 0 && time.Since(b.base) > 2*b.until
}

// ready reports whether a command is to begin now.
func (b *book) ready() bool {
	return !b.over() && (b.closed() || time.Duration(b.begun)*b.period <= time.Since(b.base))
}

// begin notes that a slot's command begins, and draws its block.
func (b *book) begin(slot int) (block int64) {
	now := time.Since(b.base)
	due := now
	if !b.closed() {
		due = time.Duration(b.begun) * b.period
		_ = b.lag.RecordValue(max(1, int64(now-due)))
	}
	b.begun++
	b.due[slot].Store(int64(due))
	b.since[slot].Store(int64(now))
	return b.random.Int64N(b.blocks)
}

// end notes that a slot's command is done.
func (b *book) end(slot int) {
	b.last = time.Since(b.base)
	_ = b.latency.RecordValue(max(1, int64(b.last)-b.due[slot].Load()))
	_ = b.own.RecordValue(max(1, int64(b.last)-b.since[slot].Load()))
	b.ended++
}

// turned is what a turn has measured at the host.
type turned struct {
	Count     int64
	Took      time.Duration
	Latency   string        // the histogram, encoded, in nanoseconds from the intended time
	OwnP50    int64         // the median from when commands began
	LagP50    int64         // nanoseconds behind the intended time at which commands began
	LagP99    int64         // the same
	Pacing    time.Duration // processor time of the pacer's spinning
	Saturated bool          // less was done than was asked for, so latencies say how long the turn was
}

func (b *book) turned(pacing time.Duration) (t turned, err error) {
	t = turned{Count: b.ended, Took: b.last, Pacing: pacing, OwnP50: b.own.ValueAtQuantile(50), LagP50: b.lag.ValueAtQuantile(50), LagP99: b.lag.ValueAtQuantile(99)}
	t.Saturated = !b.closed() && float64(b.ended) < 0.95*float64(b.Rate)*max(b.last, b.until-b.period).Seconds()
	t.Latency, err = report.Encode(b.latency)
	return t, err
}

// size is the length of a block.
const size = plain.Size
