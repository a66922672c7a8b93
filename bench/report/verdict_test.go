package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/bench/load"
)

func TestARunSaysInItsFirstLineWhetherTheMachineCouldAnswer(t *testing.T) {
	quiet := under(10_000, 900, 0.1)
	disturbed := Row{Name: "wait", Rate: 10_000, Kept: 2, Dropped: 7, Refused: "something else used the processors during 7 of 9 repeats"}
	for name, c := range map[string]struct {
		rows []Row
		says string
	}{
		"quiet":               {quiet, "This machine could answer: 18 of 18 turns were undisturbed. The repeats agree in 2 of 2 rows; the others are named below their tables."},
		"one row disturbed":   {append(quiet[:2:2], disturbed), "This machine could answer: 20 of 27 turns were undisturbed. The repeats agree in 2 of 2 rows; the others are named below their tables."},
		"most rows disturbed": {append(quiet[:2:2], disturbed, disturbed, disturbed), "This machine could not answer: something else used the processors, and left 3 of 5 rows without figures."},
		"most turns disturbed": {
			append(quiet[:2:2], disturbed, disturbed, disturbed, disturbed, disturbed),
			"This machine could not answer: something else used the processors during 35 of 63 turns.",
		},
		"too few repeats": {
			[]Row{repeated(polled, 10_000, 1, 400, 401), repeated(channel, 10_000, 1, 500, 501)},
			"This machine could not answer: in no row do the repeats agree.",
		},
		"nothing": {[]Row{{Name: channel, Refused: "no"}}, "This machine could not answer: nothing could be measured."},
	} {
		t.Run(name, func(t *testing.T) {
			r := reportOf(c.rows...)
			for _, format := range []string{"table", "markdown", "benchstat", "perftest"} {
				var out bytes.Buffer
				require.NoError(t, r.Write(&out, format))
				lines := strings.Split(out.String(), "\n")
				if format == "markdown" { // behind its heading and its command
					lines = lines[4:]
				}
				assert.Equal(t, c.says, strings.TrimPrefix(lines[0], "# "), format)
			}
		})
	}
}

func TestATableHasLowAndHighBesideWhatTheReportIsAbout(t *testing.T) {
	r := reportOf(measured(polled, load.Closed, 1000, 1), repeated(channel, load.Closed, 1, twoStates...), repeated("wait", load.Closed, 1, 400, 410, 405, 395, 400, 4e6))
	for kind, want := range map[Kind][]string{
		Delivery:  {"low–high", "990 ns – 1.01 µs", "two states", "4× 515 ns, 5× 2.8 ms", "wait: one repeat apart, 5 repeats at 400 ns, 1 at 4 ms"},
		Bandwidth: {"6.34 MB/s – 6.46 MB/s"},
		Connect:   {"99.0 k – 101.0 k"},
		Scale:     {"495 ns – 505 ns"},
	} {
		r.Kind = kind
		var out bytes.Buffer
		r.WriteTables(&out)
		for _, text := range want {
			assert.Contains(t, out.String(), text, kind)
		}
		assert.NotContains(t, out.String(), "±", kind)
	}
}

func TestTurnsThatAreTooShortForAMedianAreNoDisagreement(t *testing.T) {
	slow := measured(channel, load.Closed, 500, 1)
	slow.Latency = nil
	r := Report{Kind: Latency, Rows: []Row{slow}}
	assert.Equal(t, "its turns had too few messages for a median: a longer --duration has more", r.Unable())
	saturated := slow
	saturated.Saturated = true
	r.Rows = []Row{saturated}
	assert.Equal(t, "in no row do the repeats agree", r.Unable(), "a longer one has no latencies, either")
	r.Rows = []Row{slow, repeated(polled, load.Closed, 1, twoStates...)}
	assert.Equal(t, "in no row do the repeats agree", r.Unable())
}

func TestEachKindStandsOnItsOwnFigure(t *testing.T) {
	for _, kind := range []Kind{Delivery, Latency, Bandwidth, Scale, Connect, Peers} {
		r := reportOf(measured(polled, load.Closed, 400, 1))
		r.Kind = kind
		assert.Empty(t, r.Unable(), kind)
		row := &r.Rows[0]
		scattered := repeated("", 0, 1, twoStates...).Latency[0].Repeats
		switch kind {
		case Bandwidth, Connect:
			row.PerSecond = scattered
		case Scale:
			row.Processor = scattered
		default:
			row.Latency[0].Repeats = scattered
		}
		assert.NotEmpty(t, r.Unable(), kind)
	}
}
