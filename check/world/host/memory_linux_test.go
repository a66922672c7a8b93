package host

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// addresses are how many bytes of addresses the process has.
func addresses(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	pages, err := strconv.Atoi(strings.Fields(string(b))[0])
	require.NoError(t, err)
	return pages * os.Getpagesize()
}

func TestAProgramGivesItsMemoryBackHoweverItEnds(t *testing.T) {
	const one = 4 << 30 // of each program
	repeats, spins := load(t, "repeats"), load(t, "spins")
	before := addresses(t)
	for range 8 {
		assert.Empty(t, repeats.Run(t.Context(), Run{Seed: 1, Limits: hour, Args: []string{"x"}}).Err)
		assert.NotEmpty(t, repeats.Run(t.Context(), Run{Seed: 1, Limits: hour, Args: []string{"x", "fail"}}).Err)
		assert.NotEmpty(t, spins.Run(t.Context(), Run{Seed: 1, Limits: hour}).Err)
	}
	assert.Less(t, addresses(t), before+one)
}
