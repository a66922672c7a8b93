package conformance

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Only Linux shows which descriptors are open.
func TestTheLeakCheckFindsAnOpenDescriptor(t *testing.T) {
	w := watch()
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	assert.ErrorContains(t, w.find(0), "descriptors are open")
	require.NoError(t, f.Close())
	assert.NoError(t, w.find(patience))
}
