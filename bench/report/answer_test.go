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
	"godat/bench/stats"
)

// under is a load with a channel and polling, whose consumer uses a core.
func under(rate load.Rate, p50, cores float64) []Row {
	return []Row{measured(polled, rate, 400, 1), measured(channel, rate, p50, cores)}
}

// carries makes a row carry times as many messages as polling, for so much processor time each.
func carries(row Row, times float64, each time.Duration) Row {
	for i := range row.Samples {
		s := &row.Samples[i]
		s.Count = int64(times * 1000)
		s.Processor = time.Duration(s.Count) * each
	}
	row.PerSecond, row.Processor = about(times*1e5), about(float64(each))
	return row
}

// fast is saturation, where a channel carries times as many messages as polling.
func fast(times float64) []Row {
	rows := under(load.Max, 9000, 2)
	return []Row{carries(rows[0], 1, 500), carries(rows[1], times, 510)}
}

// scattered makes the channel's repeats scatter around those of polling.
func scattered(rows []Row) []Row {
	for i := range rows[1].Samples {
		rows[1].Samples[i].P50 = rows[0].Samples[i].P50 + int64(20*(i%3-1))
		rows[1].Samples[i].Processor = rows[0].Samples[i].Processor + rows[0].Samples[i].Took/20*time.Duration(i%3-1)
		rows[1].Samples[i].Count = rows[0].Samples[i].Count + int64(50*(i%3-1))
	}
	return rows
}

// Each outcome reads as a whole: what a channel costs at a light load, back to back and at
// saturation, and what follows for a choice. A difference has its interval, or is not told.
func TestTheSentencesOfEachOutcome(t *testing.T) {
	const (
		light       = "At 10k messages a second a message takes 900 ns by channel and 400 ns polled: 500 ns longer (495 ns to 505 ns). A channel keeps 0.10 processors busy and polling 1.00: 0.90 fewer (0.90 to 0.90)."
		lightQuick  = "At 10k messages a second a message takes 300 ns by channel and 400 ns polled: 100 ns shorter (99 ns to 101 ns). A channel keeps 1.20 processors busy and polling 1.00: 0.20 more (0.20 to 0.20)."
		lightUntold = "At 10k messages a second a message takes 400 ns by channel and 400 ns polled: the difference can't be told from none (between 20 ns shorter and 20 ns longer). " +
			"A channel keeps 1.00 processors busy and polling 1.00: the difference can't be told from none (between 0.05 more and 0.05 fewer)."
		back       = "Back to back one goroutine posts and takes, and nobody sleeps. A message takes 500 ns by channel and 400 ns polled: 100 ns longer (99 ns to 101 ns)."
		slow       = "As fast as one goroutine can post, a channel carries 70k a second and polling 100k a second: 0.70 times as many (0.70 to 0.70). A message costs 510 ns of processor time by channel and 500 ns polled: 10 ns more (10 ns to 10 ns)."
		quick      = "As fast as one goroutine can post, a channel carries 120k a second and polling 100k a second: 1.20 times as many (1.20 to 1.20). A message costs 510 ns of processor time by channel and 500 ns polled: 10 ns more (10 ns to 10 ns)."
		fastUntold = "As fast as one goroutine can post, a channel carries 100k a second and polling 100k a second: which is faster can't be told (a channel 0.95 to 1.05 times polling). A message costs 510 ns of processor time by channel and 500 ns polled: the difference can't be told from none (between 26 ns less and 24 ns more)."
	)
	unsteady := []Row{repeated(polled, 10_000, 1, twoStates...), measured(channel, 10_000, 480, 1)}
	for name, c := range map[string]struct {
		rows []Row
		says string
	}{
		"a channel costs time and saves a processor": {
			slices.Concat(under(10_000, 900, 0.1), under(load.Closed, 500, 1), fast(0.7)),
			light + " " + back + " " + slow + " Choose a channel where messages come now and then: it leaves 0.90 processors to others. It costs 500 ns a message. " +
				"Poll if that time matters more than a processor. Where one consumer must take over 70k a second, poll.",
		},
		"it costs time at a light load alone": {
			slices.Concat(under(10_000, 900, 0.1), fast(1.2)),
			light + " " + quick + " Choose a channel where messages come now and then: it leaves 0.90 processors to others. It costs 500 ns a message. Poll if that time matters more than a processor.",
		},
		"it saves a processor, and costs rate alone": {
			slices.Concat(under(10_000, 400, 0.1), fast(0.7)),
			"At 10k messages a second a message takes 400 ns by channel and 400 ns polled: the difference can't be told from none (between 0 ns longer and 0 ns longer). " +
				"A channel keeps 0.10 processors busy and polling 1.00: 0.90 fewer (0.90 to 0.90). " + slow +
				" Choose a channel where messages come now and then: it leaves 0.90 processors to others. This run shows no price in time. Where one consumer must take over 70k a second, poll.",
		},
		"it is quicker, and uses more": {
			slices.Concat(under(10_000, 300, 1.2), fast(1.2)),
			lightQuick + " " + quick + " Choose a channel: no price of it can be told here.",
		},
		"polling is better in all": {
			slices.Concat(under(10_000, 900, 1), fast(0.7)),
			"At 10k messages a second a message takes 900 ns by channel and 400 ns polled: 500 ns longer (495 ns to 505 ns). A channel keeps 1.00 processors busy and polling 1.00: " +
				"the difference can't be told from none (between 0.00 fewer and 0.00 fewer). " + slow +
				" This run shows no processor saved by a channel. Poll if a processor can be spared and 500 ns a message matter. Where one consumer must take over 70k a second, poll.",
		},
		"nothing can be told": {
			slices.Concat(scattered(under(10_000, 400, 1)), scattered(fast(1))),
			lightUntold + " " + fastUntold + " Choose a channel: no price of it can be told here.",
		},
		"closed loop alone": {
			under(load.Closed, 500, 1),
			back + " Poll if a processor is always busy with messages, and 100 ns of each matter. What a channel saves while messages come now and then was not measured: the run had no such rate with figures.",
		},
		"saturation alone": {
			fast(0.7),
			slow + " Where one consumer must take over 70k a second, poll. What a channel saves while messages come now and then was not measured: the run had no such rate with figures.",
		},
		"unstable at the light load": {
			slices.Concat(unsteady, under(100_000, 900, 0.1), fast(0.7)),
			strings.Replace(light, "10k", "100k", 1) + " " + slow + " Choose a channel where messages come now and then: it leaves 0.90 processors to others. It costs 500 ns a message. " +
				"Poll if that time matters more than a processor. Where one consumer must take over 70k a second, poll. Unstable here: poll (10k a second: 4 repeats at 515 ns, 5 at 2.8 ms).",
		},
		"polling stood still in one repeat": {
			[]Row{repeated(polled, 10_000, 1, 432, 900, 405, 410, 172_000, 1390, 400, 450, 430), measured(channel, 10_000, 8000, 0.1)},
			"At 10k messages a second a message takes 8 µs by channel and 432 ns polled: 7.51 µs longer (6.61 µs to 7.68 µs). A channel keeps 0.10 processors busy and polling 1.00: 0.90 fewer (0.90 to 0.90). " +
				"Choose a channel where messages come now and then: it leaves 0.90 processors to others. It costs 7.51 µs a message. Poll if that time matters more than a processor.",
		},
		"unstable in all": {unsteady, "Unstable here: poll (10k a second: 4 repeats at 515 ns, 5 at 2.8 ms)."},
		"polling refused": {
			[]Row{{Name: polled, Rate: 10_000, Refused: "it did not poll"}, measured(channel, 10_000, 900, 0.1)},
			"What a channel costs could not be measured: it did not poll.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := reportOf(c.rows...)
			assert.Equal(t, c.says, r.Answer())
			assert.Equal(t, strings.HasPrefix(c.says, "Unstable") || strings.HasPrefix(c.says, "What"), r.Unable() != "", r.Unable())
			assert.NotContains(t, r.Answer(), "the same")
		})
	}
}

func TestARoundTripByChannelHasItsDifference(t *testing.T) {
	for p50, want := range map[float64]string{
		900: "A round trip takes at the median 400 ns (poll), 900 ns (channel). By channel it is 500 ns longer (495 ns to 505 ns) than polled. A channel keeps 1.00 processors of this process busy and polling 1.00.",
		300: "A round trip takes at the median 400 ns (poll), 300 ns (channel). By channel it is 100 ns shorter (99 ns to 101 ns) than polled. A channel keeps 1.00 processors of this process busy and polling 1.00.",
	} {
		r := reportOf(under(load.Closed, p50, 1)...)
		r.Kind = Latency
		assert.Equal(t, want, r.Answer())
	}
	r := reportOf(scattered(under(load.Closed, 400, 1))...)
	r.Kind = Latency
	assert.Equal(t, "A round trip takes at the median 400 ns (poll), 400 ns (channel). By channel and polled: the difference can't be told from none (between 20 ns shorter and 20 ns longer). A channel keeps 1.00 processors of this process busy and polling 1.00.", r.Answer())
}

func TestARoundTripOfTwoGoroutinesThatAreBusySaysWhyAChannelSavesNothing(t *testing.T) {
	rows := under(load.Closed, 300, 1.97)
	rows[0] = measured(polled, load.Closed, 400, 1.98)
	r := reportOf(rows...)
	r.Kind = Latency
	assert.Contains(t, r.Answer(), " than polled. Both goroutines of a round trip are busy, and neither way saves a processor: a channel keeps 1.97 busy and polling 1.98.")
	r.Rows[0].Cores = stats.Of(nil)
	assert.True(t, strings.HasSuffix(r.Answer(), " than polled."), r.Answer())
}

// A raw channel shows which part of a channel's time is Go's.
func TestALightLoadNamesTheRawChannel(t *testing.T) {
	for raw, want := range map[float64]string{
		7600: " A raw Go channel takes 7.6 µs there: nearly all of a channel's time is Go's wake-up of the consumer. A channel keeps",
		3000: " A raw Go channel takes 3 µs there. A channel keeps",
	} {
		r := reportOf(append(under(10_000, 8000, 0.1), measured(rawChannel, 10_000, raw, 0.1))...)
		assert.Contains(t, r.Answer(), want)
	}
	unsteady := reportOf(append(under(10_000, 8000, 0.1), repeated(rawChannel, 10_000, 0.1, twoStates...))...)
	assert.NotContains(t, unsteady.Answer(), "raw")
	quicker := reportOf(append(under(10_000, 300, 0.1), measured(rawChannel, 10_000, 290, 0.1))...)
	assert.NotContains(t, quicker.Answer(), "wake-up", "nobody is woken who takes less than one that polls")
}

func TestWhatCarriesMoreThanAChannelIsNamedBesidePolling(t *testing.T) {
	other := func(name string, times float64) Row { return carries(measured(name, load.Max, 9000, 2), times, 500) }
	scatters := other("callback", 0.9)
	scatters.PerSecond = repeated("", 0, 1, twoStates...).Latency[0].Repeats
	rows := append(fast(0.7), other("iterator", 0.8), other("per-request", 0.9), other("batch", 0.6), scatters)
	assert.Contains(t, reportOf(append(slices.Clone(rows), other("wait", 0.75))...).Answer(), ", poll, or take one-shots, an iterator or Wait.")
	anchor := other(rawChannel, 3)
	anchor.Anchor = true
	text := reportOf(append(rows, anchor)...).Answer()
	assert.Contains(t, text, "Other ways carry more than a channel, too: one-shots 90k a second, an iterator 80k a second. ")
	assert.Contains(t, text, "Where one consumer must take over 70k a second, poll, or take one-shots or an iterator.")
}

// A reader who chooses by the rates must not miss a rate at which a channel is slow at times.
func TestTwoStatesOfAChannelAreToldBesideTheRates(t *testing.T) {
	at1M := []Row{measured(polled, 1_000_000, 505, 1), repeated(channel, 1_000_000, 1, twoStates...)}
	const warning = "At 1M a second a channel has two states: a message takes 515 ns in 4 of 9 repeats, and 2.8 ms in 5. Polled it takes 505 ns there."
	said, doubts, _ := reportOf(slices.Concat(under(10_000, 900, 0.1), at1M, fast(0.7))...).Costs()
	assert.Empty(t, doubts)
	assert.Len(t, said, 3)
	assert.True(t, strings.HasPrefix(said[1], "As fast as one goroutine can post,") && strings.HasSuffix(said[1], " "+warning), said[1])
	said, doubts, _ = reportOf(slices.Concat(under(10_000, 900, 0.1), at1M)...).Costs()
	assert.Empty(t, doubts)
	assert.Equal(t, warning, said[1], "there is no rate at saturation")
	said, doubts, _ = reportOf(at1M...).Costs()
	assert.Empty(t, said, "a warning alone is no answer")
	assert.Equal(t, []string{"channel (1M a second: 4 repeats at 515 ns, 5 at 2.8 ms)"}, doubts)
}

func TestARateIsWrittenWithTwoDigits(t *testing.T) {
	for perS, want := range map[float64]string{
		3.79e6: "3.8M", 5.01e6: "5.0M", 9.96e6: "10M", 123_456: "120k", 70_000: "70k", 999_600: "1.0M", 1000: "1.0k", 994: "990", 7: "7", 0: "0", 2.5e9: "2.5G",
	} {
		assert.Equal(t, want+" a second", rateOf(perS))
	}
}

func TestTheAnswerIsAboutTheFirstSize(t *testing.T) {
	large := under(10_000, 90_000, 1)
	for i := range large {
		large[i].Size = 1 << 20
	}
	assert.Equal(t, reportOf(under(10_000, 900, 0.1)...).Answer(), reportOf(append(under(10_000, 900, 0.1), large...)...).Answer())
	assert.Contains(t, reportOf(measured(polled, 10_000, 400, 1), large[1]).Answer(), "could not be measured", "rows of two sizes are not compared")
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
	assert.Contains(t, reportOf(rows...).Answer(), "A channel keeps 0.10 processors busy and polling 1.00: the repeats differ too much for a difference.")
}

func TestTheAnswerSaysWhyThereIsNone(t *testing.T) {
	refused := Row{Name: channel, Rate: 1000, Refused: "no"}
	assert.Equal(t, "What a channel costs could not be measured: no.", reportOf(refused, measured(polled, 1000, 1, 1)).Answer())
	saturated := measured(channel, 1000, 1, 1)
	saturated.Saturated, saturated.Latency = true, nil
	assert.Contains(t, reportOf(saturated, measured(polled, 1000, 1, 1)).Answer(), "under no load do both have figures")
}

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

func TestTurnsThatAreTooShortForAMedianAreNoDisagreement(t *testing.T) {
	slow := measured(channel, load.Closed, 500, 1)
	slow.Latency = nil
	r := Report{Kind: Latency, Rows: []Row{slow}}
	assert.Equal(t, "its turns had too few messages for a median: a longer --duration has more", r.Unable())
	saturated := slow
	saturated.Saturated = true
	r.Rows = []Row{saturated}
	assert.Equal(t, "in no row that answers the question do the repeats agree", r.Unable(), "a longer one has no latencies, either")
	r.Rows = []Row{slow, repeated(polled, load.Closed, 1, twoStates...)}
	assert.Equal(t, "in no row that answers the question do the repeats agree", r.Unable())
}
