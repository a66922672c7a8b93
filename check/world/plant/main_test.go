package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/check/mutate/patch"
)

func TestFaultsApplyToTheTree(t *testing.T) {
	all, err := filepath.Glob("../faults/*.patch")
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, path := range all {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		header, changes, err := patch.Read(text)
		require.NoError(t, err, path)
		require.NotEmpty(t, header["Subject"], path)
		_, err = patch.Texts("../../..", changes)
		require.NoError(t, err, path)
	}
}
