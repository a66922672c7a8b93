package runtime

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/evd"
	"godat/hw"
)

func TestAnAdapterReportsItsAttributes(t *testing.T) {
	ia := open(t, "loop:q")
	q, err := ia.Query()
	require.NoError(t, err)
	assert.Same(t, ia.Async(), q.Async)
	assert.Equal(t, "q", q.IA.AdapterName)
	assert.Equal(t, ia.Attr().MaxDepth, q.IA.MaxDTOPerEP)
	assert.True(t, q.Provider.ThreadSafe)
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
}

func TestReadsOfAllEndpointsAreCountedUpToTheLargestCount(t *testing.T) {
	assert.Equal(t, 12, product(3, 4))
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
