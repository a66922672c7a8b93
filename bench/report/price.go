package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"godat/bench/load"
)

// aCore is what counts as a saved core. A consumer that polls shares its core with the
// library's work, so that a channel never saves all of it.
const aCore = 0.5

// beside is a load under which both a channel and polling were measured.
type beside struct {
	rate            load.Rate
	channel, polled *Row
}

// price says what a channel costs, and what it saves, beside polling.
func (r *Report) price() string {
	loads, why := r.loads()
	cost, rate := cost(loads)
	if cost == "" {
		return "What a channel costs could not be measured: " + why + "."
	}
	return fmt.Sprintf("A channel costs %s at the median (%s)%s.", cost, inWords(rate), r.saving(loads))
}

func inWords(rate load.Rate) string {
	if rate.Open() {
		return rate.String() + " a second"
	}
	return map[load.Rate]string{load.Closed: "closed loop", load.Max: "as fast as possible"}[rate]
}

// loads are the loads under which a channel and polling were measured, by rate: of each
// rate the first, if it was measured with several sizes, depths or producers. why is the
// reason for which there are none, or not all.
func (r *Report) loads() (list []beside, why string) {
	why = "the run had no mode " + channel + " beside " + polled
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Name != channel {
			continue
		}
		if row.Refused != "" {
			why = row.Refused
			continue
		}
		poll := r.Beside(row, polled)
		if poll == nil {
			continue
		}
		if !slices.ContainsFunc(list, func(b beside) bool { return b.rate == row.Rate }) {
			list = append(list, beside{row.Rate, row, poll})
		}
	}
	slices.SortFunc(list, func(a, b beside) int { return cmp.Compare(a.rate, b.rate) })
	return list, why
}

// keptUp reports whether both rows have latencies.
func (b *beside) keptUp() bool {
	return !b.channel.Saturated && !b.polled.Saturated && len(b.channel.Latency) > 0 && len(b.polled.Latency) > 0
}

// cost is the difference of the medians at the greatest rate in open loop that both kept
// up with, or else in closed loop, or else at max; "" if there is none.
func cost(loads []beside) (difference string, at load.Rate) {
	var best *beside
	for i := range loads { // by rate: closed loop first, max last
		if b := &loads[i]; b.keptUp() && (best == nil || b.rate.Open()) {
			best = b
		}
	}
	if best == nil {
		return "", 0
	}
	ch, poll := best.channel.Latency[0].NS, best.polled.Latency[0].NS
	both := fmt.Sprintf("(%s, polled %s)", duration(ch.Median), duration(poll.Median))
	switch {
	case !ch.Apart(poll):
		return "no more than this run can tell " + both, best.rate
	case ch.Median < poll.Median:
		return fmt.Sprintf("−%s %s", duration(poll.Median-ch.Median), both), best.rate
	}
	return fmt.Sprintf("+%s %s", duration(ch.Median-poll.Median), both), best.rate
}

// saving says below which rate a channel saves a core. Between two loads that were
// measured, the cores that it saves are taken to fall evenly with the rate's logarithm.
func (r *Report) saving(loads []beside) string {
	var rates, saves []float64
	for _, b := range loads {
		if b.rate.Open() && b.keptUp() {
			rates = append(rates, float64(b.rate))
			saves = append(saves, b.polled.Cores.Median-b.channel.Cores.Median)
		}
	}
	n := len(rates)
	switch last := lastSaving(saves); {
	case n == 0:
		return ". What it saves could not be measured: " + r.noOpenLoop(loads)
	case last < 0:
		return fmt.Sprintf(", and saves no core from %s a second on", load.Rate(rates[0]))
	case last == n-1:
		return fmt.Sprintf(", and saves a core up to %s a second, the greatest rate measured", load.Rate(rates[last]))
	default:
		part := (saves[last] - aCore) / (saves[last] - saves[last+1])
		at := rates[last] * math.Pow(rates[last+1]/rates[last], part)
		return fmt.Sprintf(", and saves a core below about %s a second", load.Rate(twoDigits(at)))
	}
}

// lastSaving is the place of the last load at which a core is saved, or -1.
func lastSaving(saves []float64) int {
	for i := len(saves) - 1; i >= 0; i-- {
		if saves[i] >= aCore {
			return i
		}
	}
	return -1
}

// noOpenLoop says why no load in open loop has figures.
func (r *Report) noOpenLoop(loads []beside) string {
	if slices.ContainsFunc(loads, func(b beside) bool { return b.rate.Open() }) {
		return "no rate was kept up with"
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if (row.Name == channel || row.Name == polled) && row.Rate.Open() && row.Refused != "" {
			return row.Refused
		}
	}
	return "the run had no rate in open loop"
}

func twoDigits(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v))-1)
	return math.Round(v/unit) * unit
}
