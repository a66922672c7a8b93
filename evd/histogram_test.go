package evd

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAHistogramTellsItsTimes(t *testing.T) {
	var none *Histogram
	none.Record(time.Second)
	assert.Nil(t, none.Snapshot())
	h := NewHistogram()
	assert.Nil(t, h.Snapshot(), "nothing was recorded")
	for i := range 1000 {
		h.Record(time.Duration(i+1) * time.Microsecond)
	}
	s := h.Snapshot()
	require.NotNil(t, s)
	assert.EqualValues(t, 1000, s.Count)
	assert.Equal(t, 500500*time.Microsecond, s.Sum)
	assert.Equal(t, time.Millisecond, s.Max)
	for percent, got := range map[float64]time.Duration{50: s.P50, 99: s.P99, 99.9: s.P999} {
		want := time.Duration(percent * 10 * float64(time.Microsecond))
		assert.InEpsilon(t, want, got, 1./16, "%v %%", percent)
		assert.LessOrEqual(t, got, s.Max)
	}
	var sum uint64
	below := time.Duration(0)
	for _, bar := range s.Bars {
		assert.Greater(t, bar.Below, below)
		assert.NotZero(t, bar.Count)
		below = bar.Below
		sum += bar.Count
	}
	assert.EqualValues(t, 1000, sum)
	assert.Equal(t, HistogramBar{Below: 1 << 20, Count: 1000 - 524}, s.Bars[len(s.Bars)-1])
}

// A clock that stands still, or a time beyond all bounds, counts as the next one that there is.
func TestTimesOutOfRangeCount(t *testing.T) {
	h := NewHistogram()
	for _, took := range []time.Duration{-time.Second, 0, 1000 * time.Hour} {
		h.Record(took)
	}
	s := h.Snapshot()
	assert.EqualValues(t, 3, s.Count)
	assert.Equal(t, longest, s.Max)
	assert.Equal(t, time.Duration(1), s.P50)
}

func TestAHistogramTakesTheTimesOfOthers(t *testing.T) {
	a, b, sum := NewHistogram(), NewHistogram(), NewHistogram()
	for i := range 100 {
		a.Record(time.Duration(i) * time.Microsecond)
		b.Record(time.Duration(i) * time.Millisecond)
		sum.Record(time.Duration(i) * time.Microsecond)
		sum.Record(time.Duration(i) * time.Millisecond)
	}
	was, to := a.Snapshot(), NewHistogram()
	for _, some := range []*Histogram{a, nil, NewHistogram(), b} {
		to.Add(some)
	}
	assert.Equal(t, sum.Snapshot(), to.Snapshot())
	assert.Equal(t, was, a.Snapshot(), "which has changed nothing there")
	var none *Histogram
	none.Add(a)
	none.Add(to)
}
