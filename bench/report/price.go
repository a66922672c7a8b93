package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"godat/bench/load"
	"godat/bench/stats"
)

const (
	polled  = "poll"
	channel = "channel"
)

// beside is a load under which both a channel and polling were measured.
type beside struct {
	rate            load.Rate
	channel, polled *Row
}

// price says what a channel costs, and what it saves, beside polling: at the greatest rate in
// open loop at which the repeats of both agree, or else in closed loop, or else at max.
func (r *Report) price() (text string, able bool) {
	loads, why := r.loads()
	var best *beside
	var doubts []string
	for i := range loads { // by rate: closed loop first, max last
		b := &loads[i]
		said := b.doubts()
		doubts = append(doubts, said...)
		if said == nil && b.cost().Sure && (best == nil || b.rate.Open()) {
			best = b
		}
	}
	if best == nil {
		text = "What a channel costs could not be measured: " + why + "."
		if doubts != nil {
			text = unstable(doubts)
		}
		return text, false
	}
	text = best.says() + " " + r.saving(loads)
	if doubts != nil {
		text += " " + unstable(doubts)
	}
	return text, true
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
	why = "under no load do both have latencies"
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
		if poll != nil && !slices.ContainsFunc(list, func(b beside) bool { return b.rate == row.Rate }) {
			list = append(list, beside{row.Rate, row, poll})
		}
	}
	slices.SortFunc(list, func(a, b beside) int { return cmp.Compare(a.rate, b.rate) })
	return list, why
}

// doubts are the rows whose repeats don't agree.
func (b *beside) doubts() (list []string) {
	for _, row := range []*Row{b.polled, b.channel} {
		if e, ok := row.Median(); ok && !e.Steady() {
			list = append(list, fmt.Sprintf("%s (%s: %s)", row.Name, inWords(b.rate), e.Doubt(duration)))
		}
	}
	return list
}

// cost is the difference of the medians of the same repeat.
func (b *beside) cost() stats.Estimate {
	_, ch := b.channel.Median()
	_, poll := b.polled.Median()
	if !ch || !poll { // a load was not kept up with
		return stats.Of(nil)
	}
	return b.difference(func(s *Sample) float64 { return float64(s.P50) })
}

// says writes the cost, if it can be told from none.
func (b *beside) says() string {
	ch, _ := b.channel.Median()
	poll, _ := b.polled.Median()
	under := inWords(b.rate)
	e := b.cost()
	if e.Low <= 0 && e.High >= 0 {
		return fmt.Sprintf("A channel and polling take the same time at the median, within the noise (%s, polled %s; %s).", duration(ch.Median), duration(poll.Median), under)
	}
	return fmt.Sprintf("A channel costs %s at the median, between %s and %s (%s, polled %s; %s).",
		signed(e.Median), signed(e.Low), signed(e.High), duration(ch.Median), duration(poll.Median), under)
}

// signed writes a difference of times.
func signed(ns float64) string {
	if ns < 0 {
		return "−" + duration(-ns)
	}
	return "+" + duration(ns)
}

// difference estimates by how much a figure of the channel exceeds that of polling, in the
// repeats that count of both.
func (b *beside) difference(of func(*Sample) float64) stats.Estimate {
	var values []float64
	for i := range min(len(b.channel.Samples), len(b.polled.Samples)) {
		ch, poll := &b.channel.Samples[i], &b.polled.Samples[i]
		if !ch.Dropped && !poll.Dropped {
			values = append(values, of(ch)-of(poll))
		}
	}
	return stats.Of(values)
}

func twoDigits(v float64) string { return fmt.Sprintf("%.2f", v) }

// wide is how many cores an interval may span from which anything is said.
const wide = 0.5

// saving says how many cores a channel saves at the rates in open loop.
func (r *Report) saving(loads []beside) string {
	var said, none []string
	for _, b := range loads {
		if !b.rate.Open() || b.channel.Cores.Repeats == 0 || b.polled.Cores.Repeats == 0 || b.channel.Saturated || b.polled.Saturated {
			continue
		}
		e := b.difference(func(s *Sample) float64 { return -s.Processor.Seconds() / s.Took.Seconds() })
		switch {
		case !e.Sure || e.High-e.Low > wide:
			said = append(said, fmt.Sprintf("a part of a core that this run can't tell at %s a second", b.rate))
		case e.Low <= 0 && e.High >= 0:
			none = append(none, b.rate.String())
		default:
			said = append(said, fmt.Sprintf("%s cores at %s a second", or(e.Range(twoDigits), twoDigits(e.Median)), b.rate))
		}
	}
	if none != nil {
		said = append(said, fmt.Sprintf("no processor time, within the noise, at %s a second", strings.Join(none, " and ")))
	}
	if said == nil {
		return "What it saves could not be measured: " + r.noOpenLoop(loads) + "."
	}
	return "A channel saves " + strings.Join(said, ", ") + "."
}

// noOpenLoop says why no load in open loop has processor time.
func (r *Report) noOpenLoop(loads []beside) string {
	if slices.ContainsFunc(loads, func(b beside) bool { return b.rate.Open() }) {
		return "no rate was kept up with whose processor time is known"
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if (row.Name == channel || row.Name == polled) && row.Rate.Open() && row.Refused != "" {
			return row.Refused
		}
	}
	return "the run had no rate in open loop"
}
