package stats

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// The ranks are those of any table of intervals for the median.
func TestTheIntervalLeavesOutAsManyRepeatsAsTheConfidenceAllows(t *testing.T) {
	for n, want := range map[int]int{6: 0, 7: 0, 8: 0, 9: 1, 11: 1, 12: 2, 15: 3, 20: 5, 25: 7} {
		k, ok := rank(n)
		assert.True(t, ok, n)
		assert.Equal(t, want, k, n)
	}
}

func TestFiveRepeatsAreTooFewForAnInterval(t *testing.T) {
	assert.Equal(t, Estimate{Median: 3, Low: 1, High: 9, Repeats: 5}, Of([]float64{9, 1, 3, 2, 4}))
	assert.True(t, Of([]float64{9, 1, 3, 2, 4, 5}).Sure)
}

func TestAnEstimateOfNothingIsNoNumber(t *testing.T) {
	e := Of(nil)
	assert.True(t, math.IsNaN(e.Median))
	assert.False(t, e.Steady())
}

func TestAnEstimateLiesInItsInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e9, 1e9), 1, 40).Draw(t, "values")
		e := Of(values)
		assert.LessOrEqual(t, e.Low, e.Median)
		assert.LessOrEqual(t, e.Median, e.High)
		assert.Equal(t, len(values), e.Repeats)
		if e.Shape == Stalled || e.Shape == TwoStates {
			assert.Equal(t, len(values), e.States[0].Repeats+e.States[1].Repeats)
			assert.GreaterOrEqual(t, e.States[1].At, between*e.States[0].At)
		}
	})
}

func TestTheOrderOfRepeatsMattersToADriftAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(1, 1e9), 6, 20).Draw(t, "values")
		e, back := Of(values), slices.Clone(values)
		slices.Reverse(back)
		f := Of(back)
		assert.Equal(t, e.Shape, f.Shape, "a drift falls in place of rising")
		assert.InDelta(t, e.Median, f.Median, 0)
	})
}

func TestOneOutlierMovesNeitherTheMedianNorTheInterval(t *testing.T) {
	e := Of([]float64{1, 5, 3, 7, 2, 6, 4, 8, 1e9})
	assert.InDelta(t, 5, e.Median, 0)
	assert.InDelta(t, 2, e.Low, 0)
	assert.InDelta(t, 8, e.High, 0)
}

func nanoseconds(v float64) string { return fmt.Sprintf("%.0f ns", v) }

func TestASeriesIsSteadyOrSaysWhyNot(t *testing.T) {
	for name, c := range map[string]struct {
		values []float64
		shape  Shape
		steady bool
		doubt  string
	}{
		"stable":                     {[]float64{100, 104, 98, 101, 99, 103, 100, 97, 102}, "", true, ""},
		"two states":                 {[]float64{500, 2800, 510, 2790, 505, 2810, 495, 2805, 500}, TwoStates, false, "5 repeats at 500 ns, 4 at 2802 ns"},
		"two states, mostly one":     {[]float64{500, 2800, 510, 505, 2810, 495, 500, 505, 510}, TwoStates, false, "7 repeats at 505 ns, 2 at 2805 ns"},
		"drifting":                   {[]float64{100, 110, 121, 128, 141, 152, 158, 171, 180}, Drifting, false, "drifts from 110 ns to 171 ns"},
		"drifting back":              {[]float64{180, 171, 158, 152, 141, 128, 121, 110, 100}, Drifting, false, "drifts from 171 ns to 110 ns"},
		"drifting too little":        {[]float64{100, 100.5, 101, 101.5, 102, 102.5, 103, 103.5, 104}, "", true, ""},
		"one of nine stalled":        {[]float64{100, 104, 98, 101, 9900, 103, 100, 97, 102}, Stalled, true, "8 repeats at 100 ns, 1 at 9900 ns"},
		"one of seven stalled":       {[]float64{100, 104, 98, 9900, 99, 103, 100}, Stalled, false, "6 repeats at 100 ns, 1 at 9900 ns"},
		"one of seven quick":         {[]float64{100, 104, 98, 10, 99, 103, 100}, Stalled, false, "1 repeat at 10 ns, 6 at 100 ns"},
		"scattered":                  {[]float64{100, 190, 130, 250, 110, 310, 160, 120, 210}, "", false, "repeats from 110 ns to 250 ns"},
		"scattered over decades":     {[]float64{100, 6400, 200, 3200, 400, 1600, 800}, "", false, "repeats from 100 ns to 6400 ns"},
		"too few":                    {[]float64{100, 101, 99, 100, 101}, "", false, "5 repeats, where an interval takes 6"},
		"differences around nothing": {[]float64{-3, 4, -1, 2, 0, -2, 1, 3, -4}, "", false, "repeats from -3 ns to 3 ns"},
	} {
		t.Run(name, func(t *testing.T) {
			e := Of(c.values)
			assert.Equal(t, c.shape, e.Shape)
			assert.Equal(t, c.steady, e.Steady())
			assert.Equal(t, c.doubt, e.Doubt(nanoseconds))
		})
	}
}
