package conformance

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

//go:embed testdata/specification.txt
var specificationText string

func TestEveryCaseAndFeatureOfTheSpecificationIsShownOrSaysWhyNot(t *testing.T) {
	cases := make(map[string]bool)
	for _, c := range Cases() {
		cases[c.ID] = true
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(specificationText) {
		line = strings.TrimSpace(line)
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "#\t") || line == "#" {
			continue
		}
		require.False(t, seen[f[0]], "%s is there twice", f[0])
		seen[f[0]] = true
		switch {
		case len(f) == 1:
			assert.True(t, cases[f[0]], "no case %s", f[0])
		case f[1] == "=":
			assert.False(t, cases[f[0]], "%s has a case of its own", f[0])
			require.Greater(t, len(f), 2, line)
			for _, id := range f[2:] {
				assert.True(t, cases[id], "%s: no case %s", f[0], id)
			}
		case f[1] == "-":
			assert.False(t, cases[f[0]], "%s has a case", f[0])
			assert.Greater(t, len(f), 2, "%s needs a reason", f[0])
		default:
			t.Errorf("what is %q?", line)
		}
	}
	for row := 1; row <= 84; row++ {
		assert.True(t, seen[fmt.Sprint("#", row)], "feature %d", row)
	}
}
