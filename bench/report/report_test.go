package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/bench/load"
	"godat/bench/stats"
)

// around are nine repeats within 2 % of a value.
func around(x float64) (list []float64) {
	for _, percent := range []float64{0, 1, -1, 2, -2, 0, 1, -1, 0} {
		list = append(list, x*(1+percent/100))
	}
	return list
}

func about(x float64) stats.Estimate { return stats.Of(around(x)) }

func measured(name string, rate load.Rate, p50, cores float64) Row {
	return repeated(name, rate, cores, around(p50)...)
}

// repeated is a row whose repeats had these medians.
func repeated(name string, rate load.Rate, cores float64, p50s ...float64) Row {
	at := stats.Of(p50s)
	p50 := at.Median
	row := Row{
		Name: name, Size: 64, Depth: 16, Conns: 1, Rate: rate, Kept: len(p50s),
		Latency:   []Percentile{{50, p50, at}, {90, 2 * p50, stats.Estimate{}}, {99, 3 * p50, stats.Estimate{}}},
		Max:       10 * p50,
		PerSecond: about(1e5), Processor: about(500), Cores: about(cores),
	}
	for _, ns := range p50s {
		processor := time.Duration(cores * float64(time.Millisecond))
		row.Samples = append(row.Samples, Sample{Count: 1000, Took: time.Millisecond, P50: int64(ns), P99: int64(3 * ns), Processor: processor})
	}
	return row
}

// twoStates are four repeats at 515 ns and five at 2.8 ms.
var twoStates = []float64{515, 2.8e6, 515, 2.8e6, 515, 2.8e6, 2.8e6, 515, 2.8e6}

func reportOf(rows ...Row) *Report {
	return &Report{Kind: Delivery, Repeats: 7, Duration: time.Second, Rows: rows}
}

func TestEveryFormatHasTheFiguresAndTheRefusals(t *testing.T) {
	refused := Row{Name: "net.Pipe", Size: 64, Depth: 16, Rate: load.Closed, Refused: "its post waits"}
	r := reportOf(measured(polled, load.Closed, 400, 1), measured(channel, load.Closed, 1500, 1), refused)
	for format, want := range map[string][]string{
		"table":     {"closed loop", "400 ns", "1.5 µs", "net.Pipe refused: its post waits", "bench/README.md"},
		"benchstat": {"BenchmarkDelivery/mode=channel/size=64/depth=16/conns=1/producers=1/rate=closed-0\t1000\t1000.0 ns/op\t1500 p50-ns"},
	} {
		var out bytes.Buffer
		require.NoError(t, r.Write(&out, format))
		for _, text := range want {
			assert.Contains(t, out.String(), text, format)
		}
		assert.NotContains(t, out.String(), "NaN", format)
	}
}

func TestOneReasonIsGivenOnce(t *testing.T) {
	no := func(name string, rate load.Rate) Row {
		return Row{Name: name, Size: 64, Depth: 16, Conns: 1, Rate: rate, Refused: "no"}
	}
	r := reportOf(no("a", 1000), no("b", 1000), no("a", load.Max), no("b", load.Max), measured("c", load.Max, 1, 1))
	var out bytes.Buffer
	require.NoError(t, r.Write(&out, "table"))
	assert.Contains(t, out.String(), "\nall refused: no\n")
	assert.Contains(t, out.String(), "\na, b refused: no\n")
}

func TestTheJSONIsTheReport(t *testing.T) {
	r := reportOf(measured(channel, 10_000, 400, 1), measured(channel, load.Max, 400, 1), measured(polled, load.Closed, 400, 1))
	var out bytes.Buffer
	require.NoError(t, r.Write(&out, "json"))
	var back Report
	require.NoError(t, json.Unmarshal(out.Bytes(), &back))
	assert.Equal(t, r, &back)
}

func TestADroppedRepeatIsNoLineOfBenchstat(t *testing.T) {
	r := reportOf(measured(channel, load.Closed, 400, 1))
	r.Rows[0].Samples = append(r.Rows[0].Samples, Sample{Count: 1, Dropped: true})
	var out bytes.Buffer
	require.NoError(t, r.Write(&out, "benchstat"))
	assert.Equal(t, 9, strings.Count(out.String(), "Benchmark"))
}

func TestDurationsHaveThreeDigits(t *testing.T) {
	for ns, want := range map[float64]string{0.4: "0 ns", 999: "999 ns", 1234: "1.23 µs", 45_600_000: "45.6 ms", 2e9: "2 s"} {
		assert.Equal(t, want, duration(ns))
	}
}

func TestARowAmongPeersSaysWhatItDoesOnce(t *testing.T) {
	ours, theirs := measured(polled, load.Closed, 400, 1), Row{Name: "theirs", Anchor: true, Size: 64, Depth: 1, Max: 1500, Does: "checks nothing", Kept: 1}
	oneWay, like := theirs, theirs
	oneWay.Rate, like.Name = load.Max, "alike"
	r := reportOf(ours, theirs, oneWay, like, Row{Name: "missing", Refused: "not installed"})
	r.Kind = Peers
	for _, format := range []string{"table", "markdown"} {
		var out bytes.Buffer
		require.NoError(t, r.Write(&out, format))
		for _, want := range []string{"round trips of 64 bytes", "messages one way", "1.5 µs", "missing refused: not installed"} {
			assert.Contains(t, out.String(), want, format)
		}
		assert.Equal(t, 1, strings.Count(out.String(), "theirs, alike: checks nothing"), format)
		assert.NotContains(t, out.String(), " 0 ns", "what was not measured is no figure")
	}
}
