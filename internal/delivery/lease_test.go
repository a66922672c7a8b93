package delivery

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A loan counts the free places, so that Full, at each suppressed request, need not.
func TestALoanRemembersHowManyPlacesAreFree(t *testing.T) {
	d := newDispatcher(t, Config{Kind: KindChannel, QLen: 64})
	q := d.Main()
	for range 100 {
		require.True(t, q.Lessees().Lend(8))
		q.Release(8)
	}
	assert.EqualValues(t, 8, q.places.reserved.Load()-q.places.seen.Load())
}
