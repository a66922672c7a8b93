package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/bench/load"
)

// under is a load with a channel and polling, whose consumer uses a core.
func under(rate load.Rate, p50, cores float64) []Row {
	return []Row{measured(polled, rate, 400, 1), measured(channel, rate, p50, cores)}
}

func TestTheAnswerComparesAChannelWithPolling(t *testing.T) {
	rows := append(under(10_000, 900, 0.1), under(load.Max, 9000, 2)...)
	assert.Equal(t, "A channel costs +500 ns at the median, between +495 ns and +505 ns (900 ns, polled 400 ns; 10k a second). "+
		"A channel saves 0.90 cores at 10k a second.", reportOf(rows...).Answer())
	rows = append(rows, under(100_000, 300, 0.2)...)
	assert.Contains(t, reportOf(rows...).Answer(), "A channel costs −100 ns at the median, between −101 ns and −99 ns (300 ns, polled 400 ns; 100k a second). "+
		"A channel saves 0.90 cores at 10k a second, 0.80 cores at 100k a second.")
}

func TestADifferenceThatMayBeNoneIsNoFigure(t *testing.T) {
	ch := measured(channel, load.Closed, 400, 1)
	for i := range ch.Samples {
		ch.Samples[i].P50 += int64(20 * (i%3 - 1))
	}
	r := reportOf(measured(polled, load.Closed, 400, 1), ch)
	assert.Equal(t, "A channel and polling take the same time at the median, within the noise (400 ns, polled 400 ns; closed loop). "+
		"What it saves could not be measured: the run had no rate in open loop.", r.Answer())
}

func TestASavingThatMayBeNoneIsNoFigure(t *testing.T) {
	rows := append(under(10_000, 900, 1), under(100_000, 900, 1)...)
	for i := range rows[1].Samples {
		rows[1].Samples[i].Processor += rows[1].Samples[i].Took / 20 * time.Duration(i%3-1)
	}
	rows[3].Samples = slices.Clone(rows[1].Samples)
	assert.Contains(t, reportOf(rows...).Answer(), " A channel saves no processor time, within the noise, at 10k and 100k a second.")
}

func TestTheAnswerIsAboutTheFirstSize(t *testing.T) {
	large := under(10_000, 90_000, 1)
	for i := range large {
		large[i].Size = 1 << 20
	}
	assert.Equal(t, reportOf(under(10_000, 900, 0.1)...).Answer(), reportOf(append(under(10_000, 900, 0.1), large...)...).Answer())
	assert.Contains(t, reportOf(measured(polled, 10_000, 400, 1), large[1]).Answer(), "could not be measured", "rows of two sizes are not compared")
}

// The greatest rate is the one whose figures scatter most.
func TestTheAnswerStandsOnRowsWhoseRepeatsAgreeAndNamesTheOthers(t *testing.T) {
	rows := append(under(100_000, 500, 0.2), repeated(polled, 1e6, 1, twoStates...), measured(channel, 1e6, 480, 1))
	r := reportOf(rows...)
	assert.Contains(t, r.Answer(), "(500 ns, polled 400 ns; 100k a second)")
	assert.Contains(t, r.Answer(), "Unstable here: poll (1M a second: 4 repeats at 515 ns, 5 at 2.8 ms).")
	assert.Empty(t, r.Unable())
}

func TestARowInTwoStatesIsNoAnswer(t *testing.T) {
	r := reportOf(repeated(polled, 1e6, 1, twoStates...), repeated(channel, 1e6, 1, twoStates...))
	assert.Equal(t, "Unstable here: poll (1M a second: 4 repeats at 515 ns, 5 at 2.8 ms), channel (1M a second: 4 repeats at 515 ns, 5 at 2.8 ms).", r.Answer())
	assert.Equal(t, "in no row that answers the question do the repeats agree", r.Unable())
	r.Kind = Latency
	assert.Equal(t, "Unstable here: poll (4 repeats at 515 ns, 5 at 2.8 ms), channel (4 repeats at 515 ns, 5 at 2.8 ms).", r.Answer())
	assert.NotEmpty(t, r.Unable())
	r.Rows = append(r.Rows, measured("wait", 1e6, 700, 1))
	assert.Contains(t, r.Answer(), "A round trip takes at the median 700 ns (wait). Unstable here: poll (")
	assert.Empty(t, r.Unable())
}

func TestEachKindStandsOnItsOwnFigure(t *testing.T) {
	for kind, want := range map[Kind]string{
		Latency: "A round trip takes at the median 400 ns (poll).", Bandwidth: "The largest messages are carried at 6.40 MB/s (poll).",
		Scale: "Processor time of a message over 1 connections: 500 ns (poll).", Connect: "Connections made in a second: 100.0 k (poll).",
		Delivery: "A message takes at the median 400 ns (poll).",
	} {
		r := reportOf(measured(polled, load.Closed, 400, 1))
		r.Kind = kind
		assert.Equal(t, want, r.Answer())
		r.Rows[0].Latency, r.Rows[0].PerSecond, r.Rows[0].Processor = nil, about(1e5), about(500)
		switch kind {
		case Bandwidth, Connect:
			r.Rows[0].PerSecond = repeated("", 0, 1, twoStates...).Latency[0].Repeats
		case Scale:
			r.Rows[0].Processor = repeated("", 0, 1, twoStates...).Latency[0].Repeats
		default: // the median
		}
		assert.NotEmpty(t, r.Unable(), kind)
	}
}

func TestWhatIsSavedIsNotToldFromProcessorTimeThatScatters(t *testing.T) {
	rows := under(10_000, 900, 0.1)
	for i := range rows[0].Samples {
		rows[0].Samples[i].Processor = 0
		if i%2 == 0 {
			rows[0].Samples[i].Processor = 2 * rows[0].Samples[i].Took
		}
	}
	assert.Contains(t, reportOf(rows...).Answer(), "A channel saves a part of a core that this run can't tell at 10k a second.")
}

func TestTheAnswerSaysWhatOneProcessorCannotTell(t *testing.T) {
	refused := Row{Name: channel, Rate: 1000, Refused: load.ErrProcessors.Error()}
	r := reportOf(append(under(load.Closed, 500, 1), refused)...)
	assert.Contains(t, r.Answer(), "(500 ns, polled 400 ns; closed loop). What it saves could not be measured: "+refused.Refused+".")
	assert.Empty(t, r.Unable())
}

func TestTheAnswerSaysWhyThereIsNone(t *testing.T) {
	refused := Row{Name: channel, Rate: 1000, Refused: "no"}
	assert.Equal(t, "What a channel costs could not be measured: no.", reportOf(refused, measured(polled, 1000, 1, 1)).Answer())
	saturated := measured(channel, 1000, 1, 1)
	saturated.Saturated, saturated.Latency = true, nil
	assert.Contains(t, reportOf(saturated, measured(polled, 1000, 1, 1)).Answer(), "under no load do both have latencies")
}

func TestARunSaysInItsFirstLineWhetherTheMachineCouldAnswer(t *testing.T) {
	quiet := under(10_000, 900, 0.1)
	disturbed := Row{Name: "wait", Rate: 10_000, Kept: 2, Dropped: 7, Refused: "something else used the processors during 7 of 9 repeats"}
	for name, c := range map[string]struct {
		rows []Row
		says string
	}{
		"quiet":               {quiet, "This machine could answer: 18 of 18 turns were undisturbed, and in 2 of 2 rows the repeats agree."},
		"one row disturbed":   {append(quiet[:2:2], disturbed), "This machine could answer: 20 of 27 turns were undisturbed, and in 2 of 2 rows the repeats agree."},
		"most rows disturbed": {append(quiet[:2:2], disturbed, disturbed, disturbed), "This machine could not answer: something else used the processors, and left 3 of 5 rows without figures."},
		"most turns disturbed": {
			append(quiet[:2:2], disturbed, disturbed, disturbed, disturbed, disturbed),
			"This machine could not answer: something else used the processors during 35 of 63 turns.",
		},
		"too few repeats": {
			[]Row{repeated(polled, 10_000, 1, 400, 401), repeated(channel, 10_000, 1, 500, 501)},
			"This machine could not answer: in no row that answers the question do the repeats agree.",
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
