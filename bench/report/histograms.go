package report

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Encode writes a histogram as a line of an HdrHistogram log has it.
func Encode(h *hdrhistogram.Histogram) (string, error) {
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	return string(text), err
}

// NewLog begins an HdrHistogram log.
func NewLog(w io.Writer, comment string) (*hdrhistogram.HistogramLogWriter, error) {
	log := hdrhistogram.NewHistogramLogWriter(w)
	return log, errors.Join(log.OutputComment("["+comment+"]"), log.OutputLogFormatVersion(), log.OutputLegend())
}

// WriteHistograms writes the latencies of each repeat of each row as an HdrHistogram log,
// and after the repeats of a row those that count together, under the row's tag with
// "/all" behind it. Tools that read such logs select by tags. A repeat that was dropped has
// a tag that ends in "/dropped".
func (r *Report) WriteHistograms(w io.Writer) error {
	log, err := NewLog(w, fmt.Sprintf("%s; nanoseconds; %s", r.Command, r.Host))
	if err != nil {
		return err
	}
	for i := range r.Rows {
		if err := r.logRow(log, &r.Rows[i]); err != nil {
			return fmt.Errorf("%s: %w", r.tag(&r.Rows[i]), err)
		}
	}
	return nil
}

// tag names a row in a log, whose tags have neither spaces nor commas.
func (r *Report) tag(row *Row) string {
	name := fmt.Sprintf("%s/%s/%s/%dB/%d", r.Kind, row.Name, row.Rate, row.Size, row.Depth)
	if row.Conns > 1 {
		name += fmt.Sprintf("/%dconns", row.Conns)
	}
	if row.Producers > 1 {
		name += fmt.Sprintf("/%dproducers", row.Producers)
	}
	return strings.NewReplacer(" ", "-", ",", "").Replace(name)
}

func (r *Report) logRow(log *hdrhistogram.HistogramLogWriter, row *Row) error {
	var all *hdrhistogram.Histogram
	for _, s := range row.Samples {
		if s.Histogram == "" {
			continue // a program that tells its own figures
		}
		h, err := hdrhistogram.Decode([]byte(s.Histogram))
		if err != nil {
			return err
		}
		h.SetStartTimeMs(s.Start.UnixMilli())
		h.SetEndTimeMs(s.Start.Add(s.Took).UnixMilli())
		h.SetTag(r.tag(row))
		if s.Dropped {
			h.SetTag(r.tag(row) + "/dropped")
		}
		if err := log.OutputIntervalHistogram(h); err != nil {
			return err
		}
		switch {
		case s.Dropped:
		case all == nil:
			all = h
		default:
			all.Merge(h)
			all.SetEndTimeMs(h.EndTimeMs())
		}
	}
	if all == nil {
		return nil
	}
	all.SetTag(r.tag(row) + "/all")
	return log.OutputIntervalHistogram(all)
}
