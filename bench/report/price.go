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
	polled     = "poll"
	channel    = "channel"
	rawChannel = "raw channel"
)

// beside is a load under which both a channel and polling were measured.
type beside struct {
	rate            load.Rate
	channel, polled *Row
	raw             *Row   // a raw channel; nil if it was not measured
	others          []*Row // the library's other ways of delivery
}

// price says what a channel costs beside polling, in time and in processors: at the least
// rate in open loop, back to back, and at saturation; and what follows for a choice. Each
// stands on rows whose repeats agree; the others are named.
func (r *Report) price() (text string, able bool) {
	said, doubts, why := r.Costs()
	if said == nil {
		text = "What a channel costs could not be measured: " + why + "."
		if doubts != nil {
			text = unstable(doubts)
		}
		return text, false
	}
	text = strings.Join(said, " ")
	if doubts != nil {
		text += " " + unstable(doubts)
	}
	return text, true
}

// Costs are the sentences of what a channel costs, with the choice as the last. doubts are
// the rows that it can't stand on. why says why there is no sentence.
func (r *Report) Costs() (said, doubts []string, why string) {
	loads, why := r.loads()
	var c choice
	var warnings []string  // of rates at which a channel has two states
	for i := range loads { // by rate: closed loop first, max last
		b := &loads[i]
		if doubt := b.doubts(); doubt != nil {
			if b.changes() && said != nil {
				warnings = append(warnings, b.states())
				continue
			}
			doubts = append(doubts, doubt...)
			continue
		}
		switch {
		case b.rate == load.Closed && b.time().Sure:
			said = append(said, "Back to back one goroutine posts and takes, and nobody sleeps. A message takes "+b.times()+".")
			c.back = b.time()
		case b.rate == load.Max && b.ratio().Sure:
			said = append(said, strings.Join(append([]string{b.saturated()}, warnings...), " "))
			c.most, c.rate, c.beyond, warnings = b.ratio(), b.channel.PerSecond.Median, b.beyond(), nil
		case b.rate.Open() && c.light == 0 && b.time().Sure:
			c.light, c.slower, c.saved = b.rate, b.time(), b.saving()
			said = slices.Insert(said, 0, fmt.Sprintf("At %s messages a second a message takes %s.%s %s.", b.rate, b.times(), b.wakeUp(), b.processors()))
		}
	}
	if said != nil {
		said = append(append(said, warnings...), c.says())
	}
	return said, doubts, why
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
	why = "under no load do both have figures"
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Name != channel && row.Name != polled {
			continue
		}
		if row.Refused != "" {
			why = row.Refused
			continue
		}
		poll := r.Beside(row, polled)
		if row.Name == channel && poll != nil && !slices.ContainsFunc(list, func(b beside) bool { return b.rate == row.Rate }) {
			list = append(list, beside{row.Rate, row, poll, r.Beside(row, rawChannel), r.others(row)})
		}
	}
	slices.SortFunc(list, func(a, b beside) int { return cmp.Compare(a.rate, b.rate) })
	return list, why
}

// others are the library's ways of delivery that were measured as a channel was.
func (r *Report) others(ch *Row) (list []*Row) {
	for i := range r.Rows {
		row := &r.Rows[i]
		if !row.Anchor && row.Name != polled && row.Name != channel && row.setting() == ch.setting() && row.Refused == "" {
			list = append(list, row)
		}
	}
	return list
}

// subject is the figure of a row that the load is about: the rate at saturation, and
// otherwise the time.
func (b *beside) subject(row *Row) (e stats.Estimate, write func(float64) string, ok bool) {
	if b.rate == load.Max {
		return row.PerSecond, rateOf, row.PerSecond.Repeats > 0
	}
	e, ok = row.Median()
	return e, duration, ok
}

// doubts are the rows whose repeats don't agree. One repeat apart is none where the difference
// of the two rows is clear: it is taken repeat by repeat, and has an interval of its own.
func (b *beside) doubts() (list []string) {
	if b.isClear() {
		return nil
	}
	for _, row := range []*Row{b.polled, b.channel} {
		if e, write, ok := b.subject(row); ok && !e.Steady() {
			list = append(list, fmt.Sprintf("%s (%s: %s)", row.Name, inWords(b.rate), e.Doubt(write)))
		}
	}
	return list
}

// isClear reports whether the two rows differ, by about as much in each repeat, and neither
// drifts or has two states.
func (b *beside) isClear() bool {
	for _, row := range []*Row{b.polled, b.channel} {
		if e, _, _ := b.subject(row); e.Shape == stats.TwoStates || e.Shape == stats.Drifting {
			return false
		}
	}
	difference := b.time()
	if b.rate == load.Max {
		difference = b.ratio()
	}
	return difference.Steady() && (difference.Low > 0 || difference.High < 0)
}

// time is the difference of the medians of the same repeat.
func (b *beside) time() stats.Estimate {
	_, ch := b.channel.Median()
	_, poll := b.polled.Median()
	if !ch || !poll { // a load was not kept up with
		return stats.Of(nil)
	}
	return b.compare(func(ch, poll *Sample) float64 { return float64(ch.P50 - poll.P50) })
}

// ratio is the rate of a channel, in that of polling.
func (b *beside) ratio() stats.Estimate { return b.compare(rates) }

// rates is the rate of one repeat, in another's.
func rates(a, b *Sample) float64 {
	return float64(a.Count) / a.Took.Seconds() / (float64(b.Count) / b.Took.Seconds())
}

// spent is how much more processor time a message takes by channel; of no repeats where that is unknown.
func (b *beside) spent() stats.Estimate {
	if b.channel.Processor.Repeats == 0 || b.polled.Processor.Repeats == 0 {
		return stats.Of(nil)
	}
	return b.compare(func(ch, poll *Sample) float64 {
		return float64(ch.Processor)/float64(max(ch.Count, 1)) - float64(poll.Processor)/float64(max(poll.Count, 1))
	})
}

// saving is how many processors fewer a channel uses; of no repeats where that is unknown.
func (b *beside) saving() stats.Estimate {
	if b.channel.Cores.Repeats == 0 || b.polled.Cores.Repeats == 0 {
		return stats.Of(nil)
	}
	return b.compare(func(ch, poll *Sample) float64 {
		return poll.Processor.Seconds()/poll.Took.Seconds() - ch.Processor.Seconds()/ch.Took.Seconds()
	})
}

// compare estimates a figure of a channel and polling.
func (b *beside) compare(of func(ch, poll *Sample) float64) stats.Estimate {
	return paired(b.channel, b.polled, of)
}

// paired estimates a figure of two rows from the repeats that count of both, each with the same repeat of
// the other.
func paired(a, b *Row, of func(a, b *Sample) float64) stats.Estimate {
	var values []float64
	for i := range min(len(a.Samples), len(b.Samples)) {
		if x, y := &a.Samples[i], &b.Samples[i]; !x.Dropped && !y.Dropped {
			values = append(values, of(x, y))
		}
	}
	return stats.Of(values)
}

// than says on which side of a value an estimate lies: 0 if this run can't tell.
func than(e stats.Estimate, value float64) int {
	switch {
	case !e.Sure, e.Low <= value && e.High >= value:
		return 0
	case e.Low > value:
		return 1
	}
	return -1
}

// times writes the time of both, and the difference with its interval.
func (b *beside) times() string {
	ch, _ := b.channel.Median()
	poll, _ := b.polled.Median()
	return fmt.Sprintf("%s by channel and %s polled: %s", duration(ch.Median), duration(poll.Median), difference(b.time(), duration, "longer", "shorter"))
}

// difference writes a difference with its 95 % interval, or that it can't be told.
func difference(e stats.Estimate, write func(float64) string, more, less string) string {
	side := func(v float64) string {
		if v < 0 {
			return write(-v) + " " + less
		}
		return write(v) + " " + more
	}
	switch than(e, 0) {
	case 1:
		return fmt.Sprintf("%s %s (%s to %s)", write(e.Median), more, write(e.Low), write(e.High))
	case -1:
		return fmt.Sprintf("%s %s (%s to %s)", write(-e.Median), less, write(-e.High), write(-e.Low))
	}
	return fmt.Sprintf("the difference can't be told from none (between %s and %s)", side(e.Low), side(e.High))
}

func twoDigits(v float64) string { return fmt.Sprintf("%.2f", v) }

// wide is how many processors an interval may span from which anything is said.
const wide = 0.5

// processors says how many processors both use at a rate.
func (b *beside) processors() string {
	e := b.saving()
	if e.Repeats == 0 {
		return "How much of the processors they use could not be measured"
	}
	both := fmt.Sprintf("A channel keeps %s processors busy and polling %s: ", twoDigits(b.channel.Cores.Median), twoDigits(b.polled.Cores.Median))
	if !e.Sure || e.High-e.Low > wide {
		return both + "the repeats differ too much for a difference"
	}
	return both + difference(e, twoDigits, "fewer", "more")
}
