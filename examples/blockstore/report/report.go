// Package report shows what the block store does: a progress bar while it
// works, a table when it is done.
package report

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Latency is a histogram of how long operations took. One goroutine records; Merge adds
// another histogram.
type Latency struct{ h *hdrhistogram.Histogram }

// The range in which latencies are told apart, to 1 %.
const (
	shortest = 100 * time.Nanosecond
	longest  = 10 * time.Minute
)

// NewLatency makes an empty histogram.
func NewLatency() *Latency {
	return &Latency{hdrhistogram.New(int64(shortest), int64(longest), 2)}
}

// Record counts one operation.
func (l *Latency) Record(d time.Duration) {
	_ = l.h.RecordValue(min(int64(d), int64(longest))) // out of range is the only error
}

// Merge adds the operations of another histogram.
func (l *Latency) Merge(from *Latency) { l.h.Merge(from.h) }

// Count is the number of recorded operations.
func (l *Latency) Count() int64 { return l.h.TotalCount() }

// Phase is a part of a run, with its counts.
type Phase struct {
	Name    string
	Files   int
	Bytes   int64
	Took    time.Duration
	Latency *Latency // of every block
}

// Print writes a table of phases.
func Print(w io.Writer, phases ...Phase) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"", "files", "blocks", "MB", "seconds", "MB/s", "ops/s", "p50", "p90", "p99", "p99.9", "max"})
	var right []table.ColumnConfig
	for n := 2; n <= 12; n++ {
		right = append(right, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	for _, p := range phases {
		t.AppendRow(p.row())
	}
	t.Render()
}

func (p Phase) row() table.Row {
	seconds := max(p.Took.Seconds(), 1e-9)
	mb := float64(p.Bytes) / 1e6
	ops := float64(p.Latency.Count())
	row := table.Row{
		p.Name, p.Files, p.Latency.Count(), fmt.Sprintf("%.1f", mb), fmt.Sprintf("%.2f", seconds),
		fmt.Sprintf("%.0f", mb/seconds), fmt.Sprintf("%.0f", ops/seconds),
	}
	for _, q := range []float64{50, 90, 99, 99.9, 100} {
		row = append(row, short(time.Duration(p.Latency.h.ValueAtPercentile(q))))
	}
	return row
}

// short rounds to about three digits.
func short(d time.Duration) time.Duration {
	for unit := time.Second; unit > time.Nanosecond; unit /= 10 {
		if d >= unit {
			return d.Round(unit / 100)
		}
	}
	return d
}

// Progress is a bar that grows with bytes. Its methods may be called from any
// goroutine; on nil they do nothing.
type Progress struct{ bar *progressbar.ProgressBar }

// NewProgress shows a bar on f if that is a terminal, and else nothing.
func NewProgress(f *os.File, title string, total int64) *Progress {
	if !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return newProgress(f, title, total)
}

func newProgress(w io.Writer, title string, total int64) *Progress {
	return &Progress{progressbar.NewOptions64(max(total, 1),
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(title),
		progressbar.OptionShowBytes(true),
		progressbar.OptionSetWidth(30),
		progressbar.OptionSetRenderBlankState(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)}
}

// Add grows the bar.
func (p *Progress) Add(n int) {
	if p != nil {
		_ = p.bar.Add(n) // more than the total if a file has grown, which does no harm
	}
}

// Close removes the bar.
func (p *Progress) Close() {
	if p != nil {
		_ = p.bar.Finish() // as above
	}
}
