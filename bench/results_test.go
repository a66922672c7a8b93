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
	kind := report.Kind(args[0])
	switch {
	case args[0] == "targets":
		return errMissed
	case args[0] == "scale":
		return errors.New("too large")
	case slices.Contains([]string{"ratios", "stream", "idle", "agree"}, args[0]):
		_, err := io.WriteString(out, "a table of "+args[0]+"\n")
		return err
	}
	row := func(name string, ns float64) report.Row {
		at := stats.Estimate{Median: ns, Low: ns, High: ns}
		return report.Row{Name: name, Rate: load.Closed, Latency: []report.Percentile{{Percent: 50, NS: at}}, PerSecond: at, Provider: "loop"}
	}
	rows := []report.Row{row("poll", 1000), row("wait", 1500), row("channel", 2000), row("net.Conn", 20_000)}
	return json.NewEncoder(out).Encode(report.Report{Kind: kind, Rows: rows})
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
	page, readme, err := written(t, t.TempDir(), canned, resultsCommand{Agree: true})
	require.ErrorContains(t, err, "too large")
	require.NotErrorIs(t, err, errMissed, "a target that was missed is no failure of the page")
	for _, p := range parts() {
		assert.Contains(t, page, "\n## "+p.title+"\n")
		for _, line := range p.lines {
			assert.Equal(t, !isScript(line), strings.Contains(page, "`go run ./bench "+line+"`"), line)
		}
	}
	assert.Contains(t, page, "`go run ./bench scale` failed: too large")
	assert.Contains(t, page, "a table of idle")
	assert.Contains(t, page, "Not measured yet: `go run ./bench results --only guest`")
	assert.NotContains(t, page, "NaN")
	assert.True(t, strings.HasPrefix(readme, "# godat\n\n"+figuresBegin+"- A channel costs +1 µs (2 µs, polled 1 µs)"), readme)
	assert.Contains(t, readme, "- A round trip takes at the median 1 µs (poll), 2 µs (channel), 20 µs (net.Conn).\n")
	assert.True(t, strings.HasSuffix(readme, figuresEnd+"\nmore\n"))
	assert.NotContains(t, readme, "old")
}

func TestOnePartIsMeasuredAnewAndTheOthersAreKept(t *testing.T) {
	dir := t.TempDir()
	before, _, _ := written(t, dir, canned, resultsCommand{})
	newer := func(args []string, out io.Writer) error {
		assert.Equal(t, "stream", args[0], "only this part is measured")
		_, err := io.WriteString(out, "a newer table\n")
		return err
	}
	after, readme, err := written(t, dir, newer, resultsCommand{Only: []string{"stream"}})
	require.NoError(t, err)
	assert.Equal(t, before, strings.Replace(after, "a newer table", "a table of stream", 1))
	assert.Contains(t, readme, "old", "README's figures come from another part")
	assert.ErrorContains(t, (&resultsCommand{Only: []string{"all"}}).Run(&command{}, io.Discard), `no part "all": one of loop, iwarp`)
}

func TestAFileWithoutMarksKeepsItsText(t *testing.T) {
	name := filepath.Join(t.TempDir(), "README.md")
	require.NoError(t, os.WriteFile(name, []byte("# godat\n"), 0o600))
	require.ErrorContains(t, replaceFigures(name, "new"), "has no lines")
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
	lines := []string{strings.Join(usualAgree, " "), "agree --pairs=2 latency --depth=2"}
	for _, p := range parts() {
		lines = append(lines, p.lines...)
	}
	for _, line := range lines {
		if isScript(line) {
			_, err := os.Stat(filepath.Join("..", strings.Fields(line)[1]))
			assert.NoError(t, err)
			continue
		}
		_, err := parser.Parse(strings.Fields(line))
		assert.NoError(t, err, line)
	}
}
