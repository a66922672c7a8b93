package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheReadmeShowsThisProgram(t *testing.T) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, program, ok := strings.Cut(string(source), "package main\n")
	require.True(t, ok)
	// A checkout on Windows may have other line endings.
	text := strings.ReplaceAll(string(readme), "\r\n", "\n")
	assert.Contains(t, text, "```go\npackage main\n"+strings.ReplaceAll(program, "\r\n", "\n")+"```\n")
}
