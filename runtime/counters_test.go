package runtime

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
)

func TestAnAdapterCountsWhatIsMadeOnIt(t *testing.T) {
	ia := open(t, "loop")
	pz, err := ia.NewPZ()
	require.NoError(t, err)
	for range 2 {
		lmr, err := pz.Alloc(64, hw.AllPrivileges)
		require.NoError(t, err)
		require.NoError(t, lmr.Free())
		d, err := ia.NewDispatcher(channel(1))
		require.NoError(t, err)
		require.NoError(t, d.Close())
	}
	_, err = pz.NewRMR()
	require.NoError(t, err)
	srq, err := ia.NewSRQ(pz, 1, 0)
	require.NoError(t, err)
	require.NoError(t, srq.Close())
	for _, kind := range []hw.AsyncKind{
		hw.AsyncDeviceFatal, hw.AsyncQPError, hw.AsyncQPError, hw.AsyncCQOverrun, hw.AsyncSRQError,
	} {
		ia.async.report(hw.AsyncEvent{Kind: kind})
	}
	var want Counters
	want.SRQs, want.SRQsFreed = 1, 1
	want.Memory.Zones, want.Memory.Windows = 1, 1
	want.Memory.Regions, want.Memory.RegionsFreed = 2, 2
	want.Dispatchers, want.DispatchersFreed = 2, 2
	want.Async = AsyncCounters{Errors: 5, Endpoints: 2, Dispatchers: 1, SharedReceivers: 1}
	c, err := ia.Counters()
	require.NoError(t, err)
	assert.Equal(t, want, c)
	c, err = ia.ResetCounters()
	require.NoError(t, err)
	assert.Equal(t, want, c)
	c, err = ia.Counters()
	require.NoError(t, err)
	assert.Zero(t, c)
	require.NoError(t, ia.Close())
	_, err = ia.Counters()
	requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
	_, err = ia.ResetCounters()
	requireCode(t, err, hw.InvalidHandle, hw.HandleIA)
}
