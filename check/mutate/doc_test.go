package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A reader copies the example, so it is a mutation that runs.
func TestTheExampleOfEachPageIsAMutation(t *testing.T) {
	for page, example := range map[string]struct{ mark, patch string }{
		"doc.go":                {"//\t", "mutations/loop/no-second-look-after-stalled.patch"},
		"../../CONTRIBUTING.md": {"  ", "mutations/keys/a-freed-key-does-not-rest.patch"},
	} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		patch, err := os.ReadFile(example.patch)
		require.NoError(t, err)
		plain := regexp.MustCompile(`(?m)^(`+example.mark+`|//$)`).ReplaceAllString(string(text), "")
		assert.Contains(t, trimmed(plain), trimmed(string(patch)), "the example of %s is not %s", page, example.patch)
	}
}

// trimmed leaves out what an editor may take away at the ends of lines.
func trimmed(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\r")
	}
	return strings.Join(lines, "\n")
}
