package storage

import (
	"fmt"
	"math"

	"godat/bench/load"
	"godat/bench/stats"
)

// crossing is the rate above which one row's figure is below another's.
type crossing struct {
	turns int            // that were looked at
	rates []float64      // of the turns that cross
	below int            // turns in which it is below at every rate
	at    stats.Estimate // of rates
}

// series is a figure of a row by rate, for each turn.
type series func(c *cell) []float64

// cross finds where a's figure falls below b's: for each turn between the last rate at which it is
// not, and the next, on scales of logarithms. Rates at which one of them fell behind are left out.
func (s *Study) cross(place Place, write bool, depth int, a, b string, of series) (x crossing) {
	var rates []float64
	var ratios [][]float64 // by rate and turn
	for _, rate := range s.Rates {
		l := Load{Write: write, Depth: depth, Rate: rate}
		one, other := s.at[key{place, a, l}], s.at[key{place, b, l}]
		if one == nil || other == nil || one.refused != nil || other.refused != nil || one.saturated() || other.saturated() {
			continue
		}
		rates, ratios = append(rates, float64(rate)), append(ratios, quotients(of(one), of(other)))
	}
	if len(rates) < 2 {
		return x
	}
	for turn := range ratios[0] {
		x.turns++
		last := -1 // the last rate at which a's is not below
		for i := range rates {
			if turn < len(ratios[i]) && ratios[i][turn] >= 1 {
				last = i
			}
		}
		switch {
		case last < 0:
			x.below++
		case last < len(rates)-1:
			x.rates = append(x.rates, between(rates[last], rates[last+1], ratios[last][turn], ratios[last+1][turn]))
		}
	}
	x.at = stats.Of(x.rates)
	return x
}

// between is where a line between two points of ratios is 1.
func between(x0, x1, y0, y1 float64) float64 {
	l0, l1 := math.Log(y0), math.Log(y1)
	if l0 == l1 {
		return x0
	}
	return math.Exp(math.Log(x0) + (math.Log(x1)-math.Log(x0))*l0/(l0-l1))
}

// quotients are those of the same turn.
func quotients(a, b []float64) (list []float64) {
	for i := range min(len(a), len(b)) {
		list = append(list, a[i]/max(1, b[i]))
	}
	return list
}

// String says where the figure crosses.
func (x crossing) String() string {
	switch {
	case x.turns == 0:
		return "it was not measured at two rates that both keep up with"
	case 2*x.below > x.turns:
		return fmt.Sprintf("below at every rate in %d of %d turns", x.below, x.turns)
	case 2*len(x.rates) <= x.turns:
		return fmt.Sprintf("not below at the highest rate in %d of %d turns", x.turns-len(x.rates)-x.below, x.turns)
	case !x.at.Sure:
		return fmt.Sprintf("from %s commands/s on (few turns)", load.Rate(math.Round(x.at.Median)))
	}
	return fmt.Sprintf("from %s commands/s on (95 %% interval %s to %s; %d of %d turns cross)",
		load.Rate(math.Round(x.at.Median)), load.Rate(math.Round(x.at.Low)), load.Rate(math.Round(x.at.High)), len(x.rates), x.turns)
}

// brief is String for a sentence, without the turns.
func (x crossing) brief() string {
	switch {
	case x.turns == 0:
		return "at rates that were not measured"
	case 2*x.below > x.turns:
		return "at every rate"
	case 2*len(x.rates) <= x.turns:
		return "at no rate"
	case !x.at.Sure:
		return fmt.Sprintf("from %s/s on (few turns)", load.Rate(math.Round(x.at.Median)))
	}
	return fmt.Sprintf("from %s/s on (95 %% interval %s to %s)",
		load.Rate(math.Round(x.at.Median)), load.Rate(math.Round(x.at.Low)), load.Rate(math.Round(x.at.High)))
}
