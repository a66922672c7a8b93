package report

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"godat/bench/load"
)

// under is a load with a channel and polling, whose consumer uses a core.
func under(rate load.Rate, p50, cores float64) []Row {
	return []Row{measured(polled, rate, 400, 1), measured(channel, rate, p50, cores)}
}

func TestTheAnswerComparesAChannelWithPolling(t *testing.T) {
	var rows []Row
	for _, l := range [][]Row{under(10_000, 900, 0.1), under(100_000, 500, 0.2), under(1e6, 600, 0.8), under(load.Max, 9000, 2)} {
		rows = append(rows, l...)
	}
	assert.Equal(t, "A channel costs +200 ns (600 ns, polled 400 ns) at the median (1M a second), and saves a core below about 320k a second.", reportOf(rows...).Answer())
	assert.Equal(t, "A channel costs +100 ns (500 ns, polled 400 ns) at the median (100k a second), and saves a core up to 100k a second, the greatest rate measured.", reportOf(rows[:4]...).Answer())
	assert.Equal(t, "A channel costs +200 ns (600 ns, polled 400 ns) at the median (1M a second), and saves no core from 1M a second on.", reportOf(rows[4:]...).Answer())
}

func TestTheAnswerIsAboutTheFirstSize(t *testing.T) {
	large := under(10_000, 90_000, 1)
	for i := range large {
		large[i].Size = 1 << 20
	}
	assert.Equal(t, reportOf(under(10_000, 900, 0.1)...).Answer(), reportOf(append(under(10_000, 900, 0.1), large...)...).Answer())
	assert.Contains(t, reportOf(measured(polled, 10_000, 400, 1), large[1]).Answer(), "could not be measured", "rows of two sizes are not compared")
}

func TestADifferenceWithinTheIntervalsIsNone(t *testing.T) {
	r := reportOf(measured(polled, load.Closed, 400, 1), measured(channel, load.Closed, 410, 1))
	assert.Equal(t, "A channel costs no more than this run can tell (410 ns, polled 400 ns) at the median (closed loop). "+
		"What it saves could not be measured: the run had no rate in open loop.", r.Answer())
}

func TestTheAnswerSaysWhatOneProcessorCannotTell(t *testing.T) {
	refused := Row{Name: channel, Rate: 1000, Refused: load.ErrProcessors.Error()}
	r := reportOf(append(under(load.Closed, 500, 1), refused)...)
	assert.Equal(t, "A channel costs +100 ns (500 ns, polled 400 ns) at the median (closed loop). What it saves could not be measured: "+refused.Refused+".", r.Answer())
}

func TestTheAnswerSaysWhatDisturbedAllRates(t *testing.T) {
	disturbed := Row{Name: polled, Rate: 1000, Refused: "something else used the processors"}
	r := reportOf(append(under(load.Closed, 500, 1), disturbed, measured(channel, 1000, 500, 1))...)
	assert.Contains(t, r.Answer(), "What it saves could not be measured: something else used the processors.")
}

func TestTheAnswerSaysWhyThereIsNone(t *testing.T) {
	refused := Row{Name: channel, Rate: 1000, Refused: "no"}
	assert.Equal(t, "What a channel costs could not be measured: no.", reportOf(refused, measured(polled, 1000, 1, 1)).Answer())
	assert.Contains(t, reportOf(measured(polled, 1000, 1, 1)).Answer(), "no mode channel")
	saturated := measured(channel, 1000, 1, 1)
	saturated.Saturated = true
	assert.Contains(t, reportOf(saturated, measured(polled, 1000, 1, 1)).Answer(), "could not")
}
