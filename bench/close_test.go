package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatEndsIsMeasuredBesideWhatIsIdle(t *testing.T) {
	for _, ia := range []string{"loop", "iwarp:127.0.0.1"} {
		var out bytes.Buffer
		require.NoError(t, runWith(run, nobodyElse, []string{"close", "--repeats=1", "--ia=" + ia, "--beside=1,3", "--streams=5"}, &out))
		assert.Contains(t, out.String(), "Register and Free")
		assert.Contains(t, out.String(), "half-close and close")
	}
	assert.ErrorContains(t, run([]string{"close", "--streams=1000000"}, &bytes.Buffer{}), "1000000 streams")
}
