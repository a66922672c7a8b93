package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePageIsAsItWasWritten(t *testing.T) {
	page, err := os.ReadFile("../RESULTS.md")
	require.NoError(t, err)
	at := bytes.LastIndex(page, []byte("\n<!-- "))
	require.Positive(t, at)
	require.Equal(t, summed(page[:at]), string(page[at:]), "RESULTS.md was changed by hand: write it anew, as the command's doc says")
}
