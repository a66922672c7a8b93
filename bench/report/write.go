package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Write writes the report in a format: table, markdown, json, benchstat or perftest.
func (r *Report) Write(w io.Writer, format string) error {
	switch format {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	case "markdown":
		r.WriteMarkdown(w)
		_, err := fmt.Fprintf(w, "%s\n\n%s\n\n", r.Host, r.method())
		return err
	case "benchstat":
		return r.writeBenchstat(w)
	case "perftest":
		return r.writePerftest(w)
	}
	r.WriteTables(w)
	return nil
}

// writeBenchstat writes a line for each repeat that counts, in the format of Go's
// benchmarks. benchstat -col /mode compares the modes.
func (r *Report) writeBenchstat(w io.Writer) error {
	fmt.Fprintf(w, "# %s\n", r.Verdict())
	fmt.Fprintf(w, "goos: %s\ngoarch: %s\ncpu: %s\npkg: godat/bench\ncommit: %s\n", r.Host.OS, r.Host.Arch, r.Host.CPU, r.Host.Commit)
	for i := range r.Rows {
		row := &r.Rows[i]
		name := fmt.Sprintf("Benchmark%s/mode=%s/size=%d/depth=%d/conns=%d/producers=%d/rate=%s-%d", r.Kind.title(),
			strings.ReplaceAll(row.Name, " ", "-"), row.Size, row.Depth, row.Conns, max(row.Producers, 1), row.Rate, r.Host.GOMAXPROCS)
		for _, s := range row.Samples {
			if s.Dropped || row.Refused != "" {
				continue
			}
			n := float64(max(s.Count, 1))
			fmt.Fprintf(w, "%s\t%d\t%.1f ns/op", name, s.Count, float64(s.Took)/n)
			if !row.Saturated && s.P50 > 0 {
				fmt.Fprintf(w, "\t%d p50-ns", s.P50)
			}
			if !row.Saturated && s.P99 > 0 {
				fmt.Fprintf(w, "\t%d p99-ns", s.P99)
			}
			if s.Processor >= 0 {
				fmt.Fprintf(w, "\t%.1f cpu-ns/op", float64(s.Processor)/n)
			}
			fmt.Fprintln(w)
		}
	}
	return nil
}

// writePerftest writes the columns of perftest's programs, one line for each row: those of
// ib_send_lat, or of ib_write_bw if the report is about bandwidth.
func (r *Report) writePerftest(w io.Writer) error {
	fmt.Fprintf(w, "# %s\n# %s\n", r.Verdict(), r.Host)
	line, part := latencyLine, 1.0
	switch r.Kind {
	case Bandwidth:
		line = bandwidthLine
		fmt.Fprintf(w, "%-10s %-14s %-18s %-20s %-15s %s\n", " #bytes", "#iterations", "BW peak[MB/sec]", "BW average[MB/sec]", "MsgRate[Mpps]", "# mode, rate")
	case Latency:
		part = 0.5
		fmt.Fprintln(w, "# half of each round trip, as perftest has it")
		fallthrough
	default:
		fmt.Fprintf(w, "%-9s %-12s %-13s %-13s %-16s %-13s %-15s %-22s %-24s %s\n",
			" #bytes", "#iterations", "t_min[usec]", "t_max[usec]", "t_typical[usec]", "t_avg[usec]", "t_stdev[usec]",
			"99% percentile[usec]", "99.9% percentile[usec]", "# mode, rate")
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Refused != "" || row.Saturated {
			fmt.Fprintf(w, "# %s, %s: %s\n", row.Name, row.Rate, or(row.Refused, "saturated"))
			continue
		}
		line(w, row, part)
	}
	return nil
}

// latencyLine writes a part of each latency.
func latencyLine(w io.Writer, row *Row, part float64) {
	usec := func(ns float64) string { return fmt.Sprintf("%.2f", part*ns/1e3) }
	at := func(percent float64) string {
		ns, ok := row.At(percent)
		if !ok {
			return "-"
		}
		return usec(ns)
	}
	fmt.Fprintf(w, " %-8d %-12d %-13s %-13s %-16s %-13s %-15s %-22s %-24s # %s, %s\n",
		row.Size, row.count(), usec(row.Min), usec(row.Max), at(50), usec(row.Mean), usec(row.StdDev), at(99), at(99.9), row.Name, row.Rate)
}

// bandwidthLine writes megabytes of 2^20 bytes, as perftest does.
func bandwidthLine(w io.Writer, row *Row, _ float64) {
	megabytes := float64(row.Size) / (1 << 20)
	fmt.Fprintf(w, " %-9d %-14d %-18.2f %-20.2f %-15.6f # %s, %s\n",
		row.Size, row.count(), row.PerSecond.High*megabytes, row.PerSecond.Median*megabytes, row.PerSecond.Median/1e6, row.Name, row.Rate)
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// count is how many messages the repeats had that count.
func (r *Row) count() (n int64) {
	for _, s := range r.Samples {
		if !s.Dropped {
			n += s.Count
		}
	}
	return n
}

// title is the kind with a capital letter.
func (k Kind) title() string { return strings.ToUpper(string(k[:1])) + string(k[1:]) }
