package stats

import (
	"fmt"
	"math"
	"slices"
)

// Shape is how the values of the repeats lie.
type Shape string

// The shapes. Values around one place have none.
const (
	Stalled   Shape = "one repeat apart" // the others are around one place
	TwoStates Shape = "two states"       // some repeats are around one place, and some around another
	Drifting  Shape = "drifts"           // later repeats differ from earlier ones
)

// State is a place, and how many repeats lie around it.
type State struct {
	At      float64 `json:"at"`
	Repeats int     `json:"repeats"`
}

const (
	fewest  = 6   // repeats have a shape
	between = 2   // the least ratio of two values that are two states, with none between them
	drift   = 1.1 // the least ratio of the last third of the repeats and the first
	trend   = 2.6 // the least deviation of a trend: 99 % of series without one have less
)

// shape finds the shape of values, which are also given in ascending order.
func shape(values, sorted []float64) (Shape, []State) {
	n := len(values)
	if n < fewest || sorted[0] <= 0 {
		return "", nil
	}
	if drifts(values) {
		third := n / 3
		first := middle(slices.Sorted(slices.Values(values[:third])))
		last := middle(slices.Sorted(slices.Values(values[n-third:])))
		if max(first, last) >= drift*min(first, last) {
			return Drifting, []State{{first, third}, {last, third}}
		}
	}
	below, gap := 0, 0.0 // the values below the widest gap, and its ratio
	for i := 1; i < n; i++ {
		if g := sorted[i] / sorted[i-1]; g > gap {
			below, gap = i, g
		}
	}
	low, high := sorted[:below], sorted[below:]
	if gap < between || low[below-1]/low[0] >= gap || high[n-below-1]/high[0] >= gap {
		return "", nil
	}
	states := []State{{middle(low), below}, {middle(high), n - below}}
	if min(below, n-below) == 1 {
		return Stalled, states
	}
	return TwoStates, states
}

// drifts is the test of Mann and Kendall: of all pairs of repeats, how many more rise than
// fall, or fall than rise.
func drifts(values []float64) bool {
	n, rises := len(values), 0
	for i, earlier := range values {
		for _, later := range values[i+1:] {
			if later > earlier {
				rises++
			} else if later < earlier {
				rises--
			}
		}
	}
	variance := float64(n*(n-1)*(2*n+5)) / 18
	return math.Abs(float64(rises))-1 > trend*math.Sqrt(variance)
}

// Doubt says why the repeats don't agree, or that one of them lies apart; it is empty if
// nothing is to be said. write writes a value.
func (e Estimate) Doubt(write func(float64) string) string {
	switch {
	case e.Shape == Stalled || e.Shape == TwoStates:
		a, b := e.States[0], e.States[1]
		repeats := "repeats"
		if a.Repeats == 1 {
			repeats = "repeat"
		}
		return fmt.Sprintf("%d %s at %s, %d at %s", a.Repeats, repeats, write(a.At), b.Repeats, write(b.At))
	case e.Shape == Drifting:
		return fmt.Sprintf("drifts from %s to %s", write(e.States[0].At), write(e.States[1].At))
	case e.Steady():
		return ""
	case !e.Sure:
		return fmt.Sprintf("%d repeats, where an interval takes %d", e.Repeats, fewest)
	}
	return fmt.Sprintf("repeats from %s to %s", write(e.Low), write(e.High))
}

// Range writes the interval, or where the two states lie; it is empty if that is one value.
func (e Estimate) Range(write func(float64) string) string {
	if e.Shape == TwoStates {
		a, b := e.States[0], e.States[1]
		return fmt.Sprintf("%d× %s, %d× %s", a.Repeats, write(a.At), b.Repeats, write(b.At))
	}
	if low, high := write(e.Low), write(e.High); low != high {
		return low + " – " + high
	}
	return ""
}
