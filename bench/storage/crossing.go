package storage

import (
	"fmt"
	"math"

	"godat/bench/load"
	"godat/bench/stats"
)

// crossing says at which rates one row's figure is below another's. Each turn is in one of its counts.
type crossing struct {
	turns   int
	below   int          // turns in which it is below at every rate
	above   int          // turns in which it is below at none
	from    []float64    // the rates from which on it is below
	until   []float64    // the rates up to which it is below
	between [2]load.Rate // the measured rates around all of from, or of until if there are more
}

// series is a figure of a row by rate, for each turn.
type series func(c *cell) []float64

// cross finds where a's figure falls below b's, or rises above it: for each turn between two rates that
// follow each other, on scales of logarithms. Rates at which one of them fell behind are left out.
func (s *Study) cross(place Place, write bool, depth int, a, b string, of series) (x crossing) {
	var rates []load.Rate
	var ratios [][]float64 // by rate and turn
	for _, rate := range s.Rates {
		both := s.measured(place, Load{Write: write, Depth: depth, Rate: rate}, a, b)
		if both != nil && !both[0].saturated() && !both[1].saturated() {
			rates, ratios = append(rates, rate), append(ratios, stats.Ratios(of(both[0]), of(both[1])))
		}
	}
	if len(rates) < 2 {
		return x
	}
	turns := len(ratios[0])
	for _, list := range ratios {
		turns = min(turns, len(list))
	}
	var from, until [2]load.Rate
	for turn := range turns {
		var at []int // the rates before which a's falls below, or rises above
		for i := 1; i < len(rates); i++ {
			if (ratios[i-1][turn] < 1) != (ratios[i][turn] < 1) {
				at = append(at, i)
			}
		}
		x.turns++
		falls := ratios[0][turn] >= 1
		switch {
		case len(at) == 0 && falls:
			x.above++
		case len(at) == 0:
			x.below++
		case len(at) == 1:
			low, high := rates[at[0]-1], rates[at[0]]
			rate := between(float64(low), float64(high), ratios[at[0]-1][turn], ratios[at[0]][turn])
			if falls {
				x.from, from = append(x.from, rate), around(from, low, high)
			} else {
				x.until, until = append(x.until, rate), around(until, low, high)
			}
		}
	}
	x.between = from
	if len(x.until) > len(x.from) {
		x.between = until
	}
	return x
}

// around widens two rates so that others lie between them.
func around(both [2]load.Rate, low, high load.Rate) [2]load.Rate {
	if both[1] == 0 {
		return [2]load.Rate{low, high}
	}
	return [2]load.Rate{min(both[0], low), max(both[1], high)}
}

// between is where a line between two points of ratios is 1.
func between(x0, x1, y0, y1 float64) float64 {
	l0, l1 := math.Log(y0), math.Log(y1)
	if l0 == l1 {
		return x0
	}
	return math.Exp(math.Log(x0) + (math.Log(x1)-math.Log(x0))*l0/(l0-l1))
}

// String says where the figure is below, how many turns agree, and how well a rate is known.
func (x crossing) String() string { return x.text(true) }

// brief is String without how well a rate is known.
func (x crossing) brief() string { return x.text(false) }

func (x crossing) text(whole bool) string {
	text, turns, known := x.most()
	switch {
	case turns == 0:
		return text
	case known == "" || !whole:
		return fmt.Sprintf("%s (%d of %d turns agree)", text, turns, x.turns)
	}
	return fmt.Sprintf("%s (%d of %d turns agree; %s)", text, turns, x.turns, known)
}

// most is what holds in most turns, in how many, and how well its rate is known; 0 turns if nothing does.
func (x crossing) most() (text string, turns int, known string) {
	switch {
	case x.turns == 0:
		return "at rates that are not known, since both keep up with one at most", 0, ""
	case 2*x.below > x.turns:
		return "at every rate", x.below, ""
	case 2*x.above > x.turns:
		return "at no rate", x.above, ""
	case 2*len(x.from) > x.turns:
		text, known = x.place("above", x.from)
		return text, len(x.from), known
	case 2*len(x.until) > x.turns:
		text, known = x.place("below", x.until)
		return text, len(x.until), known
	}
	return "at rates that differ by turn", 0, ""
}

// place is where lines cross, and how well that is known. Nothing was measured between two rates, so an interval over
// the turns says less than the two.
func (x crossing) place(side string, rates []float64) (text, known string) {
	at := stats.Of(rates)
	interval := "too few for an interval"
	if at.Sure {
		interval = fmt.Sprintf("95 %% interval %s to %s", load.Rate(math.Round(at.Low)), load.Rate(math.Round(at.High)))
	}
	return fmt.Sprintf("%s %s/s", side, load.Rate(math.Round(at.Median))), fmt.Sprintf("%s, by a line between the measured %s and %s", interval, x.between[0], x.between[1])
}
