package storage

import (
	"fmt"
	"time"

	"godat/bench/load"
)

// Load is what is asked for in a turn.
type Load struct {
	Write bool
	Depth int       // commands under way, at most
	Rate  load.Rate // commands a second; closed is as many as there can be, and idle none
	Idle  bool
}

// String is what tables and logs call the load.
func (l Load) String() string {
	if l.Idle {
		return "idle"
	}
	return fmt.Sprintf("%s, depth %d, %s", l.op(), l.Depth, l.rate())
}

func (l Load) op() string {
	if l.Write {
		return "writes"
	}
	return "reads"
}

func (l Load) rate() string {
	switch {
	case l.Idle:
		return "idle"
	case l.Rate == load.Closed:
		return "saturation"
	}
	return l.Rate.String() + "/s"
}

// idleTurns is how many times as long as another turn an idle one is.
const idleTurns = 4

// takes is how long a turn of the load is.
func (l Load) takes(duration time.Duration) time.Duration {
	if l.Idle {
		return idleTurns * duration
	}
	return duration
}

// loads are all loads of a turn, idle first. With one command under way a rate above what that
// saturates at says nothing that saturation does not say, so there are fewer.
func loads(rates []load.Rate, depths []int) []Load {
	list := []Load{{Idle: true}}
	for _, write := range []bool{false, true} {
		for _, depth := range depths {
			for _, rate := range rates {
				if depth == 1 && rate > mostAlone {
					continue
				}
				list = append(list, Load{Write: write, Depth: depth, Rate: rate})
			}
			list = append(list, Load{Write: write, Depth: depth, Rate: load.Closed})
		}
	}
	return list
}

const mostAlone = 10_000
