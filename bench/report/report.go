// Package report has the results of a benchmark, and shows them to people and tools.
package report

import (
	"math"
	"time"

	"godat/bench/host"
	"godat/bench/load"
	"godat/bench/stats"
)

// Report is all that a benchmark has measured.
type Report struct {
	Kind     Kind          `json:"kind"`
	Host     host.Line     `json:"host"`
	Command  string        `json:"command"`
	Date     time.Time     `json:"date"`
	Repeats  int           `json:"repeats"`
	Duration time.Duration `json:"duration"` // of one repeat of one row, in nanoseconds
	Rows     []Row         `json:"rows"`
}

// Kind is what a report is about.
type Kind string

// The kinds.
const (
	Delivery  Kind = "delivery"
	Latency   Kind = "latency"
	Bandwidth Kind = "bandwidth"
	Scale     Kind = "scale"
	Connect   Kind = "connect"
	Peers     Kind = "peers"
)

// Title is the question that the report answers.
func (r *Report) Title() string {
	switch r.Kind {
	case Latency:
		return "How long does a round trip take?"
	case Bandwidth:
		return "How many bytes can RDMA writes carry?"
	case Scale:
		return "What do many connections cost?"
	case Connect:
		return "How fast are connections made?"
	case Peers:
		return "What do others take for the same work?"
	default:
		return "What does a channel cost?"
	}
}

// Row is one lane under one load.
type Row struct {
	Name     string `json:"name"`   // of the mode or anchor
	Anchor   bool   `json:"anchor"` // no lane of the library's
	Provider string `json:"provider,omitempty"`
	Size     int    `json:"size"`
	Depth    int    `json:"depth"`
	Conns    int    `json:"conns"` // connections that the messages go over in turns
	// Producers is how many goroutines post; 0 means 1.
	Producers int       `json:"producers,omitempty"`
	Rate      load.Rate `json:"rate"`
	Does      string    `json:"does,omitempty"` // what a row among peers does, and what it does not

	Refused string `json:"refused,omitempty"` // why there are no figures
	Kept    int    `json:"kept"`              // repeats that count
	Dropped int    `json:"dropped"`           // repeats that something disturbed
	// Saturated says that messages were offered faster than they were taken: Latency has
	// no meaning then.
	Saturated bool `json:"saturated,omitempty"`

	Latency []Percentile `json:"latency,omitempty"`
	// Max is the greatest latency of all repeats, in nanoseconds.
	Max float64 `json:"max"`

	PerSecond stats.Estimate `json:"perSecond"` // messages taken
	Processor stats.Estimate `json:"processor"` // processor time of the process for a message, in nanoseconds
	Cores     stats.Estimate `json:"cores"`     // processors in use
	Allocs    stats.Estimate `json:"allocs"`    // of a message, by the whole process
	Samples   []Sample       `json:"samples,omitempty"`
}

// Percentile is a latency that a part of the messages did not exceed.
type Percentile struct {
	Percent float64 `json:"percent"`
	NS      float64 `json:"ns"` // of the messages of all repeats together
	// Repeats is the same of each repeat. It has no repeats if they have too few messages.
	Repeats stats.Estimate `json:"repeats"`
}

// Sample is one repeat as it was measured.
type Sample struct {
	Start     time.Time     `json:"start"`
	Count     int64         `json:"count"`
	Took      time.Duration `json:"took"`
	P50       int64         `json:"p50"`
	P99       int64         `json:"p99"`       // 0 if there were too few messages
	Processor time.Duration `json:"processor"` // of the process, without the producers' waits; negative if unknown
	Dropped   bool          `json:"dropped"`
	Histogram string        `json:"histogram,omitempty"` // of the latencies, as Encode writes it
}

// Percents are the percentiles that are estimated.
var Percents = []float64{50, 90, 99, 99.9, 99.99}

// beyond is how many messages must exceed a percentile that is told.
const beyond = 100

// Enough reports whether so many messages have a percentile: 100 lie beyond it.
func Enough(messages int64, percent float64) bool {
	return math.Round(float64(messages)*(100-percent)/100) >= beyond
}

// setting is everything in which rows may differ but the lane.
type setting struct {
	rate                          load.Rate
	size, depth, conns, producers int
}

func (r *Row) setting() setting { return setting{r.Rate, r.Size, r.Depth, r.Conns, r.Producers} }

// At returns a percentile of all repeats together; ok is false where there is none.
func (r *Row) At(percent float64) (ns float64, ok bool) {
	for _, p := range r.Latency {
		if p.Percent == percent {
			return p.NS, true
		}
	}
	return 0, false
}

// Median estimates the median latency over repeats; ok is false where there is none.
func (r *Row) Median() (e stats.Estimate, ok bool) {
	if len(r.Latency) == 0 || r.Latency[0].Percent != 50 {
		return e, false
	}
	e = r.Latency[0].Repeats
	return e, e.Repeats > 0
}

// Beside returns the row of a name that was measured in the same way as another row, with
// figures; nil if there is none.
func (r *Report) Beside(other *Row, name string) *Row {
	for i := range r.Rows {
		if row := &r.Rows[i]; row.Name == name && row.setting() == other.setting() && row.Refused == "" {
			return row
		}
	}
	return nil
}
