package report

import (
	"fmt"
	"strings"

	"godat/bench/load"
	"godat/bench/stats"
)

// Answer says in a sentence what the report is about. It stands on rows whose repeats agree,
// and names the others.
func (r *Report) Answer() string {
	text, _ := r.answer()
	return text
}

// answer also tells whether a figure stands behind the sentence.
func (r *Report) answer() (text string, able bool) {
	all := func(*Row) bool { return true }
	switch r.Kind {
	case Peers:
		text, able = r.list("A round trip takes at the median", func(row *Row) bool { return row.Rate == load.Closed })
		return text + " Rows whose work differs can't be compared: what each does is said below the tables.", able
	case Latency:
		text, able = r.list("A round trip takes at the median", all)
		return text + r.trips(), able
	case Bandwidth:
		return r.list("The largest messages are carried at", func(row *Row) bool { return row.Size == r.largest() })
	case Scale:
		return r.list(fmt.Sprintf("Processor time of a message over %d connections:", r.most()), func(row *Row) bool { return row.Conns == r.most() })
	case Connect:
		return r.list("Connections made in a second:", all)
	case Delivery:
		if r.has(polled) && r.has(channel) {
			return r.price()
		}
	}
	return r.list("A message takes at the median", all)
}

// trips says by how much a round trip by channel differs from one polled; it is empty if
// the repeats of one don't agree.
func (r *Report) trips() string {
	loads, _ := r.loads()
	if len(loads) == 0 {
		return ""
	}
	b := &loads[0]
	if b.doubts() != nil || !b.time().Sure {
		return ""
	}
	text := " By channel it is " + difference(b.time(), duration, "longer", "shorter") + " than polled."
	if than(b.time(), 0) == 0 {
		text = " By channel and polled: " + difference(b.time(), duration, "longer", "shorter") + "."
	}
	ch, poll := b.channel.Cores, b.polled.Cores
	switch {
	case ch.Repeats == 0 || poll.Repeats == 0:
	case min(ch.Median, poll.Median) >= bothBusy:
		text += fmt.Sprintf(" Both goroutines of a round trip are busy, and neither way saves a processor: a channel keeps %s busy and polling %s.", twoDigits(ch.Median), twoDigits(poll.Median))
	default:
		text += fmt.Sprintf(" A channel keeps %s processors of this process busy and polling %s.", twoDigits(ch.Median), twoDigits(poll.Median))
	}
	return text
}

// bothBusy is how many processors two goroutines use at least if neither sleeps for long.
const bothBusy = 1.5

func (r *Report) has(name string) bool { return len(r.Only(name).Rows) > 0 }

// subject is the figure of a row that the report is about, and how it is written; ok is
// false where there is none.
func (r *Report) subject(row *Row) (e stats.Estimate, write func(float64) string, ok bool) {
	switch r.Kind {
	case Bandwidth:
		e, write = row.PerSecond, func(v float64) string { return perSecond(v*float64(row.Size)) + "B/s" }
	case Connect:
		e, write = row.PerSecond, perSecond
	case Scale:
		e, write = row.Processor, duration
	default:
		e, _ = row.Median()
		write = duration
	}
	return e, write, e.Repeats > 0 && row.Refused == ""
}

// list says what each row of the first load has, of those that it is about.
func (r *Report) list(what string, about func(*Row) bool) (text string, able bool) {
	var said, doubts []string
	var first *Row
	for i := range r.Rows {
		row := &r.Rows[i]
		e, write, ok := r.subject(row)
		if !ok || !about(row) || first != nil && row.Rate != first.Rate {
			continue
		}
		if first == nil {
			first = row
		}
		if e.Steady() {
			said = append(said, fmt.Sprintf("%s (%s)", write(e.Median), row.Name))
		} else {
			doubts = append(doubts, fmt.Sprintf("%s (%s)", row.Name, e.Doubt(write)))
		}
	}
	switch {
	case first == nil:
		return "Nothing could be measured.", false
	case said == nil:
		return unstable(doubts), false
	case doubts == nil:
		return what + " " + strings.Join(said, ", ") + ".", true
	}
	return what + " " + strings.Join(said, ", ") + ". " + unstable(doubts), true
}

// unstable names rows whose repeats don't agree.
func unstable(doubts []string) string { return "Unstable here: " + strings.Join(doubts, ", ") + "." }

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
