package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/bench/load"
)

// under is a load with a channel and polling, whose consumer uses a core.
func under(rate load.Rate, p50, cores float64) []Row {
	return []Row{measured(polled, rate, 400, 1), measured(channel, rate, p50, cores)}
}

// line is the line of a table in Markdown that begins so.
func line(t *testing.T, begins string, list ...*Report) string {
	t.Helper()
	for l := range strings.Lines(Beside(list...).RenderMarkdown()) {
		if strings.HasPrefix(l, "| "+begins) {
			return strings.TrimSuffix(l, "\n")
		}
	}
	return ""
}

const at10k = "10k a second offered, 64 bytes, 16 outstanding: "

func TestAChannelStandsBesidePolling(t *testing.T) {
	r := reportOf(slices.Concat(under(10_000, 900, 0.1), under(load.Max, 9000, 2), []Row{measured("raw channel", 10_000, 800, 0.1)})...)
	assert.Equal(t, "| "+at10k+"p50 | 900 ns | 400 ns | +500 ns (+495 ns to +505 ns) | 800 ns | – |", line(t, at10k+"p50", r))
	assert.Equal(t, "| "+at10k+"cores | 0.10 | 1.00 | −0.90 (−0.90 to −0.90) | 0.10 | – |", line(t, at10k+"cores", r))
	assert.Contains(t, line(t, "as many as can be posted, 64 bytes, 16 outstanding: per second", r), "| 100.0 k | 100.0 k | × 1.00 (× 1.00 to × 1.00) |")
	assert.Contains(t, line(t, "as many as can be posted, 64 bytes, 16 outstanding: processor", r), "| 500 ns | 500 ns |")
	latency := reportOf(under(load.Closed, 300, 2)...)
	latency.Kind = Latency
	assert.Contains(t, line(t, "round trips between two goroutines, 64 bytes, 16 outstanding: p50", r, latency), "| 300 ns | 400 ns | −100 ns (")
}

func TestRepeatsThatDontAgreeAreShownWhereTheyLie(t *testing.T) {
	r := reportOf(measured(polled, 10_000, 505, 1), repeated(channel, 10_000, 1, twoStates...))
	assert.Contains(t, line(t, at10k, r), "| 4× 515 ns, 5× 2.8 ms | 505 ns | ")
	few := reportOf(repeated(polled, 10_000, 1, 400, 410), repeated(channel, 10_000, 1, 500, 900))
	assert.Contains(t, line(t, at10k, few), "| 500 ns – 900 ns | 400 ns – 410 ns | too few repeats |")
}

func TestReadersInAHurryAreToldWhatTheRepeatsSay(t *testing.T) {
	told := func(poll, ch Row) (rows int, left []string) {
		all, left := Told(reportOf(poll, ch))
		return all.Length(), left
	}
	rows, left := told(measured(polled, 10_000, 10_000, 1), repeated(channel, 10_000, 1, twoStates...)) // in one of its states slower, in one faster
	assert.Equal(t, 1, rows)
	assert.Equal(t, []string{at10k + "p50"}, left)
	rows, left = told(measured(polled, 10_000, 400, 1), repeated(channel, 10_000, 1, twoStates...)) // always slower
	assert.Equal(t, 2, rows)
	assert.Empty(t, left)
	rows, left = told(measured(polled, 10_000, 400, 1), measured(channel, 10_000, 400, 1)) // alike
	assert.Equal(t, 2, rows)
	assert.Empty(t, left)
}

func TestARepeatThatWasDroppedIsNotCompared(t *testing.T) {
	r := reportOf(under(10_000, 900, 0.1)...)
	r.Rows[1].Samples[3].P50, r.Rows[1].Samples[3].Dropped = 1e9, true
	assert.Contains(t, line(t, at10k, r), "| +500 ns (")
}

func TestRowsOfTwoSizesAreNotCompared(t *testing.T) {
	rows := under(10_000, 900, 1)
	rows[1].Size = 1 << 20
	assert.Zero(t, Beside(reportOf(rows...)).Length())
	rows[1].Size, rows[1].Refused = rows[0].Size, "no"
	assert.Zero(t, Beside(reportOf(rows...)).Length())
}
