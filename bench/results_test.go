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
	case slices.Contains(asTables, args[0]):
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

func TestThePageOfResultsHasEveryPart(t *testing.T) {
	dir := t.TempDir()
	r := resultsCommand{Out: filepath.Join(dir, "RESULTS.md"), Readme: filepath.Join(dir, "README.md")}
	require.NoError(t, os.WriteFile(r.Readme, []byte("# godat\n\n"+figuresBegin+"old\n"+figuresEnd+"\nmore\n"), 0o600))
	err := r.Run(&command{again: canned}, io.Discard)
	require.ErrorContains(t, err, "too large")
	require.NotErrorIs(t, err, errMissed, "a target that was missed is no failure of the page")

	page, err := os.ReadFile(r.Out)
	require.NoError(t, err)
	for _, command := range append(slices.Clone(withReports), asTables...) {
		assert.Contains(t, string(page), "go run ./bench "+command)
	}
	assert.Contains(t, string(page), "`go run ./bench scale` failed: too large")
	assert.Contains(t, string(page), "a table of iwarp")
	assert.NotContains(t, string(page), "NaN")

	readme, err := os.ReadFile(r.Readme)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(readme), "# godat\n\n"+figuresBegin+"- A channel costs +1 µs (2 µs, polled 1 µs)"), string(readme))
	assert.Contains(t, string(readme), "- A round trip takes at the median 1 µs (poll), 2 µs (channel), 20 µs (net.Conn).\n")
	assert.True(t, strings.HasSuffix(string(readme), figuresEnd+"\nmore\n"))
	assert.NotContains(t, string(readme), "old")
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
	lines := slices.Concat(withReports, asTables, []string{strings.Join(usualAgree, " "), "agree --pairs=2 latency --depth=2"})
	for _, line := range lines {
		_, err := parser.Parse(strings.Fields(line))
		assert.NoError(t, err, line)
	}
	for _, script := range inGuest {
		_, err := os.Stat(filepath.Join("..", strings.Fields(script)[0]))
		assert.NoError(t, err)
	}
}
