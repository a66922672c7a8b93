package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGapsHaveNames(t *testing.T) {
	var g Gap
	require.NoError(t, g.Set("lax-credit,early"))
	assert.Equal(t, EarlyCompletion|LaxCredit, g)
	assert.Equal(t, "early,lax-credit", g.String())
	require.NoError(t, g.Set("wakes-for-all"))
	assert.Equal(t, EarlyCompletion|LaxCredit|WakesForAll, g)
	require.NoError(t, g.Set("may-wake-for-all"))
	assert.Equal(t, "early,lax-credit,wakes-for-all,may-wake-for-all", g.String())
	assert.ErrorContains(t, g.Set("lax"), `"lax" is no gap`)
}
