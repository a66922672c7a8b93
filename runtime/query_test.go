package runtime

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
)

func TestQueryReportsWhatIsAskedFor(t *testing.T) {
	ia := open(t, "loop:q")
	q, err := ia.Query(IAFieldNone, ProviderFieldNone)
	require.NoError(t, err)
	assert.Equal(t, Param{Async: ia.Async()}, q)
	q, err = ia.Query(IAFieldAdapterName|IAFieldMaxDTOPerEP, ProviderFieldThreadSafe)
	require.NoError(t, err)
	assert.Equal(t, IAAttr{AdapterName: "q", MaxDTOPerEP: ia.Attr().MaxDepth}, q.IA)
	assert.Equal(t, ProviderAttr{ThreadSafe: true}, q.Provider)

	q, err = ia.Query(IAFieldAll, ProviderFieldAll)
	require.NoError(t, err)
	assert.Equal(t, "q", q.IA.Address)
	assert.Equal(t, evd.MaxQLen, q.IA.MaxEVDQLen)
	assert.Positive(t, q.IA.MaxEPs)
	assert.Positive(t, q.IA.MaxIOVPerDTO)
	assert.Positive(t, q.IA.MaxMessageSize)
	assert.Equal(t, "loop", q.Provider.Name)
	assert.True(t, q.Provider.StreamMerging[5][0])
	assert.True(t, q.Provider.AsyncReturnGuaranteed)
	assert.GreaterOrEqual(t, q.Provider.MaxPrivateData, 64)
	assert.Contains(t, q.Provider.SpecificAttr, NamedAttr{"DAT_IB_RDMA_READ", "TRUE"})

	_, err = ia.Query(IAFieldAll+1, 0)
	requireCode(t, err, hw.InvalidParameter, hw.Arg2)
	_, err = ia.Query(0, ProviderFieldAll+1)
	requireCode(t, err, hw.InvalidParameter, hw.Arg4)
}

func TestAttributeMasksAreDATs(t *testing.T) {
	assert.EqualValues(t, uint64(0x3fffffffff), uint64(IAFieldAll))
	assert.EqualValues(t, 1<<17, IAFieldMaxPZs)
	assert.EqualValues(t, uint64(1)<<31, uint64(IAFieldZeroBased))
	assert.EqualValues(t, uint64(1)<<37, uint64(IAFieldVendorAttr))
	assert.EqualValues(t, 0x7fffffff, ProviderFieldAll)
	assert.EqualValues(t, 1<<15, ProviderFieldStreamMerging)
	assert.EqualValues(t, 1<<25, ProviderFieldRMRScope)
	assert.Equal(t, math.MaxInt32, product(1<<20, 1<<20))
}

func TestEveryReturnTypeHasItsSentinelHere(t *testing.T) {
	for _, err := range []error{
		hw.ErrAbort, hw.ErrConnQualInUse, hw.ErrInsufficientResources, hw.ErrInternal, hw.ErrInvalidHandle, hw.ErrInvalidParameter,
		hw.ErrInvalidState, hw.ErrLength, hw.ErrModelNotSupported, hw.ErrProviderNotFound, hw.ErrPrivileges, hw.ErrProtection,
		hw.ErrQueueEmpty, hw.ErrQueueFull, hw.ErrTimeout, hw.ErrProviderAlreadyRegistered, hw.ErrProviderInUse, hw.ErrInvalidAddress,
		hw.ErrInterrupted, hw.ErrConnQualUnavailable, hw.ErrReservedLMR, hw.ErrPortInUse, hw.ErrCommNotSupported, hw.ErrNotImplemented,
	} {
		var code *hw.Error
		require.ErrorAs(t, err, &code)
		assert.NotZero(t, code.Type)
	}
}
