package inspect

import (
	"slices"
	"time"

	"godat/runtime/internal/thresholds"
)

const (
	lowPart   = 10 * time.Second
	leastLows = 6 // of a time of Endless, of which some ten seconds may have had no look
)

// lows are the least values that looks saw in each ten seconds, of a time of Endless: what comes and goes
// grows within them, and what is never given back grows from each to the next.
type lows []low

// low is the least that looks within ten seconds saw of some counts.
type low struct {
	part int64 // since 1970
	at   time.Time
	n    [3]uint64
}

// with are the lows with what a look saw. They share nothing with those before.
func (l lows) with(at time.Time, n [3]uint64) lows {
	all, part := slices.Clone(l), at.UnixNano()/int64(lowPart)
	if last := len(all) - 1; last >= 0 && all[last].part == part {
		for i := range n {
			all[last].n[i] = min(all[last].n[i], n[i])
		}
	} else {
		all = append(all, low{part, at, n})
	}
	for len(all) > 1 && at.Sub(all[1].at) >= thresholds.Endless {
		all = all[1:]
	}
	return all
}

// grown is by how much a count is more in the last low than in the first.
func (l lows) grown(i int) int64 { return int64(l[len(l)-1].n[i]) - int64(l[0].n[i]) }

// endless reports whether each ten seconds of Endless saw more of a count than those before.
func (l lows) endless(at time.Time, i int) bool {
	if len(l) < leastLows || at.Sub(l[0].at) < thresholds.Endless-lowPart {
		return false
	}
	for part := 1; part < len(l); part++ {
		if l[part].n[i] <= l[part-1].n[i] {
			return false
		}
	}
	return true
}
