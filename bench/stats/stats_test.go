package stats

import (
	"math"
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
	assert.Equal(t, Estimate{Median: 3, Low: 1, High: 9}, Of([]float64{9, 1, 3, 2, 4}))
	assert.True(t, Of([]float64{9, 1, 3, 2, 4, 5}).Sure)
}

func TestAnEstimateOfNothingIsNoNumber(t *testing.T) {
	assert.True(t, math.IsNaN(Of(nil).Median))
}

func TestAnEstimateLiesInItsInterval(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Of(rapid.SliceOfN(rapid.Float64Range(-1e9, 1e9), 1, 40).Draw(t, "values"))
		assert.LessOrEqual(t, e.Low, e.Median)
		assert.LessOrEqual(t, e.Median, e.High)
	})
}

func TestOneOutlierMovesNeitherTheMedianNorTheInterval(t *testing.T) {
	e := Of([]float64{1, 2, 3, 4, 5, 6, 7, 8, 1e9})
	assert.Equal(t, Estimate{Median: 5, Low: 2, High: 8, Sure: true}, e)
}

func TestIntervalsThatMeetAreNotApart(t *testing.T) {
	low, high := Estimate{Low: 1, High: 3}, Estimate{Low: 4, High: 5}
	assert.True(t, low.Apart(high))
	assert.True(t, high.Apart(low))
	assert.False(t, low.Apart(Estimate{Low: 3, High: 9}))
}

func TestARoundedEstimateReachesTheLastDigit(t *testing.T) {
	exact := Estimate{Median: 1000, Low: 1000, High: 1000}
	assert.True(t, exact.Apart(Estimate{Median: 1001, Low: 1001, High: 1001}))
	rounded := exact.Rounded(0.005)
	assert.InDelta(t, 995, rounded.Low, 1e-6)
	assert.InDelta(t, 1005, rounded.High, 1e-6)
	wide := Estimate{Median: 1000, Low: 900, High: 1100}
	assert.Equal(t, wide, wide.Rounded(0.005))
}
