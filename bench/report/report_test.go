package report

import (
	"bytes"
	"encoding/json"
	"slices"
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
		Curve: []Point{{0, int64(p50 / 2), 1}, {50, int64(p50), 500}, {99, int64(3 * p50), 990}, {100, int64(10 * p50), 1000}},
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

func TestASweepHasAChart(t *testing.T) {
	for _, c := range []struct {
		kind  Kind
		rate  load.Rate
		more  func(*Row)
		title string
	}{
		{Bandwidth, load.Max, func(r *Row) { r.Size = 4096 }, "Bytes in a second by size"},
		{Bandwidth, load.Max, func(r *Row) { r.Depth = 128 }, "Bytes in a second by writes outstanding"},
		{Scale, load.Closed, func(r *Row) { r.Conns = 100 }, "Processor time of a message by connections"},
		{Latency, load.Closed, func(r *Row) { r.Size = 4096 }, "Median by size"},
		{Delivery, load.Closed, func(r *Row) { r.Depth = 64 }, "Messages a second by messages outstanding"},
		{Delivery, load.Max, func(r *Row) { r.Producers = 4 }, "Messages a second by producers"},
	} {
		more := measured(channel, c.rate, 900, 1)
		c.more(&more)
		r := reportOf(measured(channel, c.rate, 300, 1), more)
		r.Kind = c.kind
		figures, err := sweepCharts(r, r.names())
		require.NoError(t, err)
		require.NotEmpty(t, figures, c.title)
		assert.True(t, slices.ContainsFunc(figures, func(f figure) bool { return strings.HasPrefix(f.Title, c.title) }), c.title)
		assert.NotContains(t, r.Answer(), "Nothing")
	}
}

func TestTheKneeIsTheLastLoadBeforeTheLatencyGrowsOrTheLoadIsNotKeptUpWith(t *testing.T) {
	line := func(p99 ...float64) (rows []*Row) {
		for i, ns := range p99 {
			row := measured(polled, load.Rate(1000*(i+1)), ns/3, 1)
			row.Saturated = ns == 0
			if row.Saturated {
				row.Latency = nil
			}
			rows = append(rows, &row)
		}
		return rows
	}
	for _, c := range []struct {
		p99  []float64
		knee load.Rate
	}{
		{[]float64{100, 120, 290, 310, 320}, 3000},
		{[]float64{100, 120, 0}, 2000},
		{[]float64{900, 100, 200, 0}, 3000},
		{[]float64{100, 120, 290}, 0},
		{[]float64{0, 0}, 0},
	} {
		var at load.Rate
		if k := knee(line(c.p99...)); k != nil {
			at = k.Rate
		}
		assert.InDelta(t, float64(c.knee), float64(at), 0, "%v", c.p99)
	}
}

func TestTicksLieOnTheAxis(t *testing.T) {
	for _, tick := range (decades{duration}).Ticks(30, 4000) {
		assert.GreaterOrEqual(t, tick.Value, 30.0)
		assert.LessOrEqual(t, tick.Value, 4000.0)
	}
	assert.InDelta(t, 3, nines(99.9), 1e-9)
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
	var page bytes.Buffer
	require.NoError(t, r.WriteHTML(&page))
	assert.Contains(t, page.String(), "checks nothing")
	assert.NotContains(t, page.String(), "<svg")
}

func TestAMessageOneWayIsNoRoundTripOfAPeer(t *testing.T) {
	r := reportOf(Row{Name: "theirs", Refused: "disturbed"}, measured("theirs", load.Max, 400, 1))
	r.Kind = Peers
	assert.Contains(t, r.Answer(), "Nothing could be measured.")
}
