package runtime

import (
	"testing"
	"time"

	"godat/evd"
	"godat/hw"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// latencyOf is what the only dispatcher of connections has measured.
func latencyOf(t testing.TB, ia *IA) (s evd.HistogramSnapshot) {
	t.Helper()
	for _, d := range snapshot(t, ia).Dispatchers {
		if d.Latency != nil {
			require.Zero(t, s.Count, "a second one")
			s = *d.Latency
		}
	}
	return s
}

func TestTheSendsOfConnectionsAreMeasuredOnEveryProvider(t *testing.T) {
	for _, provider := range []string{"loop", "iwarp"} {
		t.Run(provider, func(t *testing.T) {
			ia := open(t, provider)
			_, client, server := both(t, ia, ConnConfig{Depth: 4, Message: 100})
			said := func() {
				say(t, client, "hello")
				hear(t, server)
			}
			said()
			stop, err := ia.MeasureLatency()
			require.NoError(t, err)
			said()
			require.Eventually(t, func() bool { return latencyOf(t, ia).Count == 1 }, patience, time.Millisecond)
			assert.True(t, ia.MeasuresLatency())
			stop()
			assert.False(t, ia.MeasuresLatency())
			said()
			s := latencyOf(t, ia)
			assert.EqualValues(t, 1, s.Count)
			assert.Positive(t, s.Max)
			assert.LessOrEqual(t, s.P50, s.Max)
		})
	}
}

func TestWithLatencyMeasuresFromTheBeginning(t *testing.T) {
	ia, err := Open(t.Context(), "loop", WithLatency())
	require.NoError(t, err)
	defer func() { require.NoError(t, ia.Close()) }()
	_, client, server := both(t, ia, ConnConfig{Depth: 4, Message: 100})
	say(t, client, "hello")
	hear(t, server)
	require.Eventually(t, func() bool { return latencyOf(t, ia).Count == 1 }, patience, time.Millisecond)
}

func TestAClosedAdapterMeasuresNothing(t *testing.T) {
	ia, err := Open(t.Context(), "loop")
	require.NoError(t, err)
	stop, err := ia.MeasureLatency()
	require.NoError(t, err)
	require.NoError(t, ia.Close())
	stop()
	_, err = ia.MeasureLatency()
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
	var none *IA
	assert.False(t, none.MeasuresLatency())
	_, err = none.MeasureLatency()
	require.ErrorIs(t, err, hw.ErrInvalidHandle)
}
