package report

import (
	"fmt"
	"strings"

	"godat/bench/load"
)

const (
	polled  = "poll"
	channel = "channel"
	// aCore is what counts as a saved core: polling itself shares its processor with the
	// library's work.
	aCore = 0.5
)

// Answer says in a sentence what the report is about.
func (r *Report) Answer() string {
	switch r.Kind {
	case Latency, Peers:
		return r.list("A round trip takes at the median", func(row *Row) (string, bool) {
			e, ok := row.At(50)
			return duration(e.Median), ok
		})
	case Bandwidth:
		return r.list("The largest messages are carried at", func(row *Row) (string, bool) {
			return row.throughput(r.Kind) + "/s", row.Size == r.largest()
		})
	case Scale:
		return r.list("Over the most connections a message takes", func(row *Row) (string, bool) {
			return duration(row.Processor.Median), row.Conns == r.most()
		})
	case Connect:
		return r.list("In a second are made", func(row *Row) (string, bool) {
			return perSecond(row.PerSecond.Median), true
		})
	default:
		return r.price()
	}
}

// list says what each row of the first load has.
func (r *Report) list(what string, has func(*Row) (string, bool)) string {
	var said []string
	var rate load.Rate
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Refused != "" || len(said) > 0 && row.Rate != rate {
			continue
		}
		if s, ok := has(row); ok {
			said, rate = append(said, fmt.Sprintf("%s (%s)", s, row.Name)), row.Rate
		}
	}
	if said == nil {
		return "Nothing could be measured."
	}
	return what + " " + strings.Join(said, ", ") + "."
}

func (r *Report) largest() (size int) {
	for i := range r.Rows {
		size = max(size, r.Rows[i].Size)
	}
	return size
}

func (r *Report) most() (conns int) {
	for i := range r.Rows {
		conns = max(conns, r.Rows[i].Conns)
	}
	return conns
}

// price says what a channel costs, and what it saves, beside polling.
func (r *Report) price() string {
	cost, rate, why := r.cost()
	if cost == "" {
		return "What a channel costs could not be measured: " + why + "."
	}
	answer := fmt.Sprintf("A channel costs %s at the median (%s)", cost, inWords(rate))
	if below, saves := r.saved(); below != nil {
		answer += fmt.Sprintf(", and saves %.1f cores at %s a second", saves, below.Rate)
	} else {
		answer += ", and saves no core"
	}
	return answer + "."
}

func inWords(rate load.Rate) string {
	if rate.Open() {
		return rate.String() + " a second"
	}
	return map[load.Rate]string{load.Closed: "closed loop", load.Max: "as fast as possible"}[rate]
}

// cost is the difference of the medians at the greatest rate in open loop that both
// modes keep up with, or in closed loop.
func (r *Report) cost() (difference string, at load.Rate, why string) {
	why = "the run had no mode " + channel + " beside " + polled
	var ch, poll *Row
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Name != channel {
			continue
		}
		if row.Refused != "" {
			why = row.Refused
		}
		other := r.Beside(row, polled)
		if row.Refused != "" || other == nil || row.Saturated || other.Saturated || len(row.Latency) == 0 || len(other.Latency) == 0 {
			continue
		}
		if ch == nil || row.Rate != load.Max && row.Rate > ch.Rate {
			ch, poll = row, other
		}
	}
	if ch == nil {
		return "", 0, why
	}
	a, b := ch.Latency[0].NS, poll.Latency[0].NS
	switch {
	case !a.Apart(b):
		difference = fmt.Sprintf("no more than this run can tell (%s beside %s)", duration(a.Median), duration(b.Median))
	case a.Median < b.Median:
		difference = fmt.Sprintf("−%s (%s beside %s)", duration(b.Median-a.Median), duration(a.Median), duration(b.Median))
	default:
		difference = fmt.Sprintf("+%s (%s beside %s)", duration(a.Median-b.Median), duration(a.Median), duration(b.Median))
	}
	return strings.Replace(difference, " beside ", ", polled ", 1), ch.Rate, ""
}

// saved is the greatest rate in open loop at which a channel saves a core, and how many.
func (r *Report) saved() (row *Row, cores float64) {
	for i := range r.Rows {
		ch := &r.Rows[i]
		if ch.Name != channel || ch.Refused != "" || !ch.Rate.Open() || ch.Saturated {
			continue
		}
		if poll := r.Beside(ch, polled); poll != nil {
			if saves := poll.Cores.Median - ch.Cores.Median; saves >= aCore && (row == nil || ch.Rate > row.Rate) {
				row, cores = ch, saves
			}
		}
	}
	return row, cores
}
