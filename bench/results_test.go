package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/bench/load"
	"godat/bench/report"
	"godat/bench/stats"
)

// canned answers each command line with a small report, and each that prints tables with
// its name.
func canned(args []string, out io.Writer) error {
	switch {
	case args[0] == "scale":
		return errors.New("too large")
	case args[0] == "idle":
		_, err := io.WriteString(out, "a table of "+args[0]+"\n")
		return err
	}
	return json.NewEncoder(out).Encode(cannedReport(report.Kind(args[0]), 1000, 1000, 1000, 1000, 1000, 1000))
}

// cannedReport is a report whose rows take multiples of what the repeats took.
func cannedReport(kind report.Kind, took ...float64) report.Report {
	row := func(name string, times float64) report.Row {
		r := report.Row{Name: name, Rate: load.Closed, Provider: "loop", Kept: len(took)}
		var values []float64
		for _, ns := range took {
			values = append(values, times*ns)
			h := hdrhistogram.New(1, 1e9, 2)
			_ = h.RecordValue(int64(times * ns))
			text, _ := report.Encode(h)
			r.Samples = append(r.Samples, report.Sample{P50: int64(times * ns), Count: 1, Histogram: text})
		}
		at := stats.Of(values)
		r.Latency, r.PerSecond, r.Processor = []report.Percentile{{Percent: 50, NS: at.Median, Repeats: at}}, at, at
		return r
	}
	return report.Report{Kind: kind, Rows: []report.Row{row("poll", 1), row("wait", 1.5), row("channel", 2), row("net.Conn", 20)}}
}

// written runs results, and returns the page and README.
func written(t *testing.T, dir string, again rerun, r resultsCommand) (page, readme string, err error) {
	t.Helper()
	r.Out, r.Readme = filepath.Join(dir, "RESULTS.md"), filepath.Join(dir, "README.md")
	require.NoError(t, os.WriteFile(r.Readme, []byte("# godat\n\n"+figuresBegin+"old\n"+figuresEnd+"\nmore\n"), 0o600))
	err = r.Run(&command{again: again}, io.Discard)
	text, readErr := os.ReadFile(r.Out)
	require.NoError(t, readErr)
	figures, readErr := os.ReadFile(r.Readme)
	require.NoError(t, readErr)
	return string(text), string(figures), err
}

func TestThePageOfResultsHasEveryPart(t *testing.T) {
	page, readme, err := written(t, t.TempDir(), canned, resultsCommand{})
	require.ErrorContains(t, err, "too large")
	for _, p := range parts() {
		assert.Contains(t, page, "\n## "+p.title+"\n")
		for _, line := range p.lines {
			assert.Contains(t, page, "`go run ./bench "+line+"`")
		}
	}
	assert.Contains(t, page, "`go run ./bench scale --mode=poll,channel,batch` failed: too large")
	assert.Contains(t, page, "a table of idle")
	assert.NotContains(t, page, "NaN")
	assert.True(t, strings.HasPrefix(readme, "# godat\n\n"+figuresBegin+"|  | channel | poll | a channel beside polling |"), readme)
	assert.Contains(t, readme, "one goroutine posts and takes, 0 bytes, 0 outstanding: p50 | 2 µs | 1 µs | +1 µs (+1 µs to +1 µs) | – | 20 µs |")
	assert.Contains(t, readme, "round trips between two goroutines, 0 bytes, 0 outstanding: p50 | 2 µs | 1 µs |")
	assert.Contains(t, readme, "\n\nLeft out, because this run does not say which of the two is more: closed loop: one goroutine posts and takes, 0 bytes, 0 outstanding: cores; ")
	assert.True(t, strings.HasSuffix(readme, figuresEnd+"\nmore\n"))
	assert.NotContains(t, readme, "old")
}

func TestTheHistogramsOfAPartLieBesideThePage(t *testing.T) {
	dir := t.TempDir()
	_, _, err := written(t, dir, canned, resultsCommand{})
	require.ErrorContains(t, err, "too large")
	for _, p := range parts() {
		file, err := os.Open(filepath.Join(dir, "RESULTS-"+p.name+".hlog"))
		if !slices.Contains([]string{"loop", "iwarp", "peers"}, p.name) {
			require.ErrorIs(t, err, os.ErrNotExist, p.name)
			continue
		}
		require.NoError(t, err)
		counts := map[string]int64{}
		for log := hdrhistogram.NewHistogramLogReader(file); ; {
			h, err := log.NextIntervalHistogram()
			require.NoError(t, err)
			if h == nil {
				break
			}
			counts[h.Tag()] += h.TotalCount()
		}
		require.NoError(t, file.Close())
		for _, line := range p.lines {
			switch kind := strings.Fields(line)[0]; kind {
			case "bandwidth", "scale": // which are not about latencies
				assert.Zero(t, counts[kind+"/channel/closed/0B/0"], line)
			default:
				assert.Positive(t, counts[kind+"/channel/closed/0B/0"], line)
				assert.Equal(t, counts[kind+"/channel/closed/0B/0"], counts[kind+"/channel/closed/0B/0/all"], line)
			}
		}
	}
}

// A reader of README can't ask the machine.
func TestAMachineThatCouldNotAnswerLeavesREADMEItsFigures(t *testing.T) {
	busy := func(args []string, out io.Writer) error {
		if args[0] != "latency" {
			return canned(args, out)
		}
		err := json.NewEncoder(out).Encode(cannedReport(report.Latency, 500, 2800, 500, 2800, 500, 2800, 500))
		return errors.Join(err, errUnable)
	}
	page, readme, err := written(t, t.TempDir(), busy, resultsCommand{Only: []string{"loop"}})
	require.ErrorIs(t, err, errUnable)
	assert.Contains(t, page, "This machine could not answer: in no row do the repeats agree.")
	assert.Contains(t, page, "poll: two states, 4 repeats at 500 ns, 3 at 2.8 µs")
	assert.Contains(t, readme, figuresBegin+"old\n"+figuresEnd)
}

func TestOnePartIsMeasuredAnewAndTheOthersAreKept(t *testing.T) {
	dir := t.TempDir()
	before, _, _ := written(t, dir, canned, resultsCommand{})
	newer := func(args []string, out io.Writer) error {
		assert.Equal(t, "idle", args[0], "only this part is measured")
		_, err := io.WriteString(out, "a newer table\n")
		return err
	}
	after, readme, err := written(t, dir, newer, resultsCommand{Only: []string{"idle"}})
	require.NoError(t, err)
	assert.Equal(t, before, strings.ReplaceAll(after, "a newer table", "a table of idle"))
	assert.Contains(t, readme, "old", "README's figures come from another part")
	assert.ErrorContains(t, (&resultsCommand{Only: []string{"all"}}).Run(&command{}, io.Discard), `no part "all": one of loop, iwarp`)
}

func TestPartsThatTwoProcessesMeasureAreBothKept(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "RESULTS.md")
	other := func(args []string, w io.Writer) error {
		if args[0] == "connect" { // meanwhile
			idle := resultsCommand{Out: out, Only: []string{"idle"}}
			require.NoError(t, idle.Run(&command{again: canned}, io.Discard))
		}
		return canned(args, w)
	}
	page, _, err := written(t, dir, other, resultsCommand{Only: []string{"iwarp"}})
	require.NoError(t, err)
	assert.Contains(t, page, "`go run ./bench connect --provider=iwarp:127.0.0.1`")
	assert.Contains(t, page, "a table of idle")
}

func TestWhatCouldNotBeWrittenIsSaidBeforeItIsMeasured(t *testing.T) {
	for _, c := range []struct{ results, readme, want string }{
		{"my notes\n", figuresBegin + figuresEnd, "no page of results"},
		{marksOf("loop").Begin + "a\n" + marksOf("iwarp").Begin + marksOf("iwarp").End, figuresBegin + figuresEnd, "part loop"},
		{strings.Repeat(marksOf("idle").Begin+marksOf("idle").End, 2), figuresBegin + figuresEnd, "twice"},
		{"", "# godat\n", "no lines"},
		{"", figuresBegin + "<!-- another -->\n" + figuresEnd, "has no line"},
		{"", strings.Repeat(figuresBegin+figuresEnd, 2), "twice"},
	} {
		dir := t.TempDir()
		r := resultsCommand{Out: filepath.Join(dir, "RESULTS.md"), Readme: filepath.Join(dir, "README.md")}
		require.NoError(t, os.WriteFile(r.Out, []byte(c.results), 0o600))
		require.NoError(t, os.WriteFile(r.Readme, []byte(c.readme), 0o600))
		measured := func([]string, io.Writer) error {
			assert.Fail(t, "it measures", c.want)
			return nil
		}
		assert.ErrorContains(t, r.Run(&command{again: measured}, io.Discard), c.want)
		for name, text := range map[string]string{r.Out: c.results, r.Readme: c.readme} {
			now, err := os.ReadFile(name)
			require.NoError(t, err)
			assert.Equal(t, text, string(now))
		}
	}
}

func TestAFileWithoutMarksKeepsItsText(t *testing.T) {
	name := filepath.Join(t.TempDir(), "README.md")
	require.NoError(t, os.WriteFile(name, []byte("# godat\n"), 0o600))
	require.ErrorContains(t, figures.Replace(name, "new"), "no lines")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, "# godat\n", string(text))
}

func TestTheReadmeHasTheMarksOfItsFigures(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	_, rest, begins := strings.Cut(string(text), figuresBegin)
	assert.True(t, begins)
	assert.Contains(t, rest, figuresEnd)
}

func TestThePageOfResultsIsMadeOfCommandsThatThereAre(t *testing.T) {
	parser, err := kong.New(&command{}, options...)
	require.NoError(t, err)
	var lines []string
	for _, p := range parts() {
		lines = append(lines, p.lines...)
	}
	for _, line := range lines {
		_, err := parser.Parse(strings.Fields(line))
		assert.NoError(t, err, line)
	}
}
