// Package stats draws conclusions from repeats: medians, how far they can be trusted,
// and whether the repeats agree at all.
package stats

import (
	"math"
	"slices"
)

// Estimate is the median of a figure over repeats, and the interval that has the
// median of all possible repeats in it with a probability of 95 %.
type Estimate struct {
	Median float64 `json:"median"`
	// Low and High are the interval, if Sure; otherwise they are the least and the
	// greatest value, because there are too few repeats for the interval.
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Sure    bool    `json:"sure"`
	Repeats int     `json:"repeats"`
	Shape   Shape   `json:"shape,omitempty"`
	// States are, of Stalled and TwoStates, where the repeats lie, and of Drifting where the
	// first third and the last third of them do.
	States []State `json:"states,omitempty"`
}

const confidence = 0.95

// Of estimates a figure from its value in each repeat, in the order of the repeats. It
// assumes nothing of how values are distributed: the interval is bounded by two of them. 0
// values give NaN.
func Of(values []float64) Estimate {
	n := len(values)
	if n == 0 {
		return Estimate{Median: math.NaN(), Low: math.NaN(), High: math.NaN()}
	}
	sorted := slices.Sorted(slices.Values(values))
	e := Estimate{Median: middle(sorted), Low: sorted[0], High: sorted[n-1], Repeats: n}
	if k, ok := rank(n); ok {
		e.Low, e.High, e.Sure = sorted[k], sorted[n-1-k], true
	}
	e.Shape, e.States = shape(values, sorted)
	return e
}

// Ratios divides a figure by another one of the same repeat, which counts as 1 at least.
func Ratios(a, b []float64) (list []float64) {
	for i := range min(len(a), len(b)) {
		list = append(list, a[i]/max(1, b[i]))
	}
	return list
}

// Shown is the median with its interval, or that there are too few repeats for one.
func (e Estimate) Shown(write func(float64) string) string {
	if !e.Sure {
		return write(e.Median) + " (few)"
	}
	return write(e.Median) + " (" + write(e.Low) + "–" + write(e.High) + ")"
}

// middle is the median of sorted values.
func middle(sorted []float64) float64 {
	n := len(sorted)
	if n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[n/2]
}

// rank is how many of n sorted values can be left out at either end, so that the rest
// still has the true median in it with the demanded confidence. The true median lies
// below the k-th value if fewer than k of the n values fall below it, which is a matter
// of n throws of a coin.
func rank(n int) (k int, ok bool) {
	outside := 0.0 // the probability that the median lies below sorted[k]
	for ; k <= n/2; k++ {
		outside += binomial(n, k)
		if 2*outside > 1-confidence {
			break
		}
	}
	return k - 1, k > 0
}

// binomial is the probability of k heads in n throws of a coin.
func binomial(n, k int) float64 {
	p := math.Pow(0.5, float64(n))
	for i := range k {
		p *= float64(n-i) / float64(i+1)
	}
	return p
}

// Steady reports whether the repeats agree, so that the median stands for them: the interval
// is no wider than half of the median, and the figure does not drift.
func (e Estimate) Steady() bool {
	return e.Sure && e.Shape != Drifting && e.High-e.Low <= math.Abs(e.Median)/2
}
