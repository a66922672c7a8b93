package inspect

import (
	"fmt"
	"time"

	"godat/ep"
	dat "godat/runtime"
)

// sum counts something on the adapter since it was opened, of what has closed, too.
type sum struct {
	Name string
	Sum  uint64
	// PerSecond is how much of it came a second between the last two looks; 0 at a first look.
	PerSecond float64
	octets    bool
}

// sumsOf are the sums of a snapshot.
func sumsOf(s *dat.Snapshot) []sum {
	requests, receives, requested, received := ofAll(s)
	list := []sum{
		{Name: "requests that succeeded", Sum: requests},
		{Name: "octets that they moved", Sum: requested, octets: true},
		{Name: "receives that succeeded", Sum: receives},
		{Name: "octets that came in them", Sum: received, octets: true},
		{Name: "connections that were established", Sum: s.Counters.ActiveEstablished + s.Counters.PassiveEstablished},
	}
	if p := s.Polls; p != nil {
		list = append(list,
			sum{Name: "polls that found completions", Sum: p.Found}, sum{Name: "polls that found nothing", Sum: p.Empty},
			sum{Name: "sleeps until the device has something", Sum: p.Waits}, sum{Name: "wake-ups of what delivers", Sum: p.Wakes})
	}
	calls := map[string]uint64{}
	rows := s.Reports["rpc totals"]
	if len(rows) == 0 {
		return list
	}
	for _, f := range rowFields(rows) {
		if f.name == "answers" || f.name == "failures" {
			for i := range rows {
				calls[f.name] += uint64(f.of(&rows[i]).number)
			}
		}
	}
	return append(list, sum{Name: answersOfCalls, Sum: calls["answers"]}, sum{Name: "failures among them", Sum: calls["failures"]})
}

// answers are those of rpc, at either end.
func (f *finder) answers() uint64 {
	for _, s := range f.now.Sums {
		if s.Name == answersOfCalls {
			return s.Sum
		}
	}
	return 0
}

// answersOfCalls is the name of a sum.
const answersOfCalls = "answers of rpc, at either end"

// wrong says what went wrong with calls within the last minute, by the row: errors by their codes among that, which
// programs answer every day.
func wrong(s *seen) (list []fact) {
	for _, kind := range []string{"rpc clients", "rpc servers"} {
		rows := s.Reports[kind]
		fields := rowFields(rows)
		for _, f := range fields {
			if f.name != "minute" {
				continue
			}
			for i := range rows {
				if text := f.of(&rows[i]).text; text != "" {
					list = append(list, fact{"not as asked for in the last minute, " + headOf(kind, fields[0].of(&rows[i]).text), text})
				}
			}
		}
	}
	return list
}

// ofAll sums what endpoints counted, those of connections, others, and closed ones.
func ofAll(s *dat.Snapshot) (requests, receives, requested, received uint64) {
	add := func(sent, got *ep.QueueCounts) {
		for _, m := range sent.Moved {
			requests, requested = requests+m.Operations, requested+m.Octets
		}
		for _, m := range got.Moved {
			receives, received = receives+m.Operations, received+m.Octets
		}
	}
	for i := range s.Conns {
		e := &s.Conns[i].Endpoint
		add(&e.Requests.QueueCounts, &e.Receives.QueueCounts)
	}
	for i := range s.Endpoints {
		e := &s.Endpoints[i]
		add(&e.Requests.QueueCounts, &e.Receives.QueueCounts)
	}
	add(&s.Freed.Requests, &s.Freed.Receives)
	return requests, receives, requested, received
}

// rates sets the sums' rates, if the look before was lately.
func (s *seen) rates(last *seen) {
	if s.First || last == nil {
		return
	}
	took := s.At.Sub(last.At).Seconds()
	for i := range s.Sums {
		sum := &s.Sums[i]
		for _, was := range last.Sums {
			if was.Name == sum.Name && took > 0 {
				sum.PerSecond = float64(grown(sum.Sum, was.Sum)) / took
			}
		}
	}
	s.Over = s.At.Sub(last.At)
}

// fact is the sum in a line, with its rate over a time; 0 says that there is none yet.
func (s *sum) fact(over time.Duration) fact {
	text, rate := number(s.Sum), fmt.Sprintf("%.3g", s.PerSecond)
	if s.octets {
		text, rate = octets(s.Sum), octets(uint64(s.PerSecond))
	} else if s.PerSecond >= 1000 {
		rate = number(uint64(s.PerSecond))
	}
	if over > 0 {
		text += fmt.Sprintf(", %s a second in the last %s", rate, ago(over))
	}
	return fact{s.Name, text}
}
