package evd

import (
	"math/bits"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"godat/internal/door"
)

// Histogram counts how long things took, to within 1/16 of each time, up to an hour, which
// longer ones count as. The first Record allocates its 5 KB. Its methods may be called from any
// goroutine; those of a nil Histogram do nothing.
type Histogram struct {
	mu     sync.Mutex
	counts *hdrhistogram.Histogram // nil before the first time
	sum    time.Duration
	most   time.Duration
}

const longest = time.Hour

// NewHistogram makes a histogram without times.
func NewHistogram() *Histogram { return new(Histogram) }

// Record counts a time.
func (h *Histogram) Record(took time.Duration) {
	if h == nil {
		return
	}
	took = min(max(took, 1), longest)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.counts == nil {
		h.counts = hdrhistogram.New(1, int64(longest), 1)
	}
	_ = h.counts.RecordValue(int64(took)) // which is in its range
	h.sum += took
	h.most = max(h.most, took)
}

// Add counts all times of another one, too, which changes nothing there.
func (h *Histogram) Add(other *Histogram) {
	if h == nil || other == nil {
		return
	}
	other.mu.Lock()
	if other.counts == nil {
		other.mu.Unlock()
		return
	}
	counts, sum, most := hdrhistogram.Import(other.counts.Export()), other.sum, other.most
	other.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.counts == nil {
		h.counts = hdrhistogram.New(1, int64(longest), 1)
	}
	h.counts.Merge(counts) // of the same range
	h.sum += sum
	h.most = max(h.most, most)
}

// HistogramSnapshot describes a [Histogram] at one moment. Its counts and its sum only grow. P50
// is the median: half of the times were not longer. 99 % were not longer than P99.
type HistogramSnapshot struct {
	Count          uint64
	Sum            time.Duration
	P50, P99, P999 time.Duration
	Max            time.Duration
	Bars           []HistogramBar // for a drawing, the shortest times first; none is empty
}

// HistogramBar counts the times below a power of two, in nanoseconds, and not below half of it.
type HistogramBar struct {
	Below time.Duration
	Count uint64
}

// Snapshot describes the histogram now; nil if nothing was recorded.
func (h *Histogram) Snapshot() *HistogramSnapshot {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.counts == nil {
		return nil
	}
	s := &HistogramSnapshot{Count: uint64(h.counts.TotalCount()), Sum: h.sum, Max: h.most}
	for percent, to := range map[float64]*time.Duration{50: &s.P50, 99: &s.P99, 99.9: &s.P999} {
		*to = min(time.Duration(h.counts.ValueAtPercentile(percent)), h.most)
	}
	for _, some := range h.counts.Distribution() {
		if some.Count == 0 {
			continue
		}
		below := time.Duration(1) << bits.Len64(uint64(some.From))
		if n := len(s.Bars); n == 0 || s.Bars[n-1].Below != below {
			s.Bars = append(s.Bars, HistogramBar{Below: below})
		}
		s.Bars[len(s.Bars)-1].Count += uint64(some.Count)
	}
	return s
}

// AddLatency adds how long the requests took whose events came to the dispatcher. The interface adapter calls it.
func (d *Dispatcher) AddLatency(_ door.Key, to *Histogram) { to.Add(&d.latency) }
