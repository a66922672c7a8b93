package prometheus

import (
	"time"

	client "github.com/prometheus/client_golang/prometheus"

	"godat/evd"
)

// requests has how long requests took, of all dispatchers.
func (p *scrape) requests() {
	all := []*evd.HistogramSnapshot{p.now.Freed.Latency}
	for i := range p.now.Dispatchers {
		all = append(all, p.now.Dispatchers[i].Latency)
	}
	p.histogram(requestTimes, all)
}

// The buckets of histograms end at powers of four nanoseconds: from a microsecond to a minute, nearly.
const (
	firstBucket = 10 // 1024 ns
	lastBucket  = 36 // 69 s
)

// histogram has the sum of histograms, of which some may be nil; there is none while nothing was measured.
func (p *scrape) histogram(d *client.Desc, all []*evd.HistogramSnapshot, labels ...string) {
	var count uint64
	var sum time.Duration
	buckets := make(map[float64]uint64)
	for power := firstBucket; power <= lastBucket; power += 2 {
		end, n := time.Duration(1)<<power, uint64(0)
		for _, h := range all {
			if h == nil {
				continue
			}
			for _, bar := range h.Bars {
				if bar.Below <= end {
					n += bar.Count
				}
			}
		}
		buckets[end.Seconds()] = n
	}
	for _, h := range all {
		if h != nil {
			count, sum = count+h.Count, sum+h.Sum
		}
	}
	if count > 0 {
		p.to <- client.MustNewConstHistogram(d, count, sum.Seconds(), buckets, append([]string{p.label}, labels...)...)
	}
}
