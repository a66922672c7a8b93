package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Write writes the report in a format: table, markdown, json or benchstat.
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

// title is the kind with a capital letter.
func (k Kind) title() string { return strings.ToUpper(string(k[:1])) + string(k[1:]) }
