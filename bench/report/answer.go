package report

import (
	"fmt"
	"strings"

	"godat/bench/load"
)

const (
	polled  = "poll"
	channel = "channel"
)

// Answer says in a sentence what the report is about.
func (r *Report) Answer() string {
	switch r.Kind {
	case Peers:
		return r.trips() + " Rows whose work differs can't be compared: what each does is said below the tables."
	case Latency:
		return r.trips()
	case Bandwidth:
		return r.list("The largest messages are carried at", func(row *Row) (string, bool) {
			return row.throughput(r.Kind) + "/s", row.Size == r.largest()
		})
	case Scale:
		return r.list(fmt.Sprintf("Of processor time, a message over %d connections takes", r.most()), func(row *Row) (string, bool) {
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

// trips says how long round trips take. Among peers, those are the rows in closed loop.
func (r *Report) trips() string {
	return r.list("A round trip takes at the median", func(row *Row) (string, bool) {
		e, ok := row.At(50)
		return duration(e.Median), ok && (r.Kind != Peers || row.Rate == load.Closed)
	})
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
