package drawing

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// eachSource calls f with the text of each Go file of the repository that is no test.
func eachSource(t *testing.T, f func(file, text string)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		f(file, string(text))
		return err
	}))
}

// A heap address is another one at each start, and says nothing to a reader of a log.
func TestNothingIsNamedByItsAddressInTheHeap(t *testing.T) {
	eachSource(t, func(file, text string) {
		for _, verb := range []string{"(%p", " %p", "\"%p", "=%p"} {
			assert.NotContains(t, text, verb, file)
		}
	})
}

func TestAProgramThatServesThePageSaysWhere(t *testing.T) {
	seen := 0
	eachSource(t, func(file, text string) {
		if strings.Contains(file, "examples") && strings.Contains(text, "inspect.Serve(") {
			seen++
			assert.NotContains(t, text, "_, err = inspect.Serve(", file)
			assert.NotContains(t, text, "_, err := inspect.Serve(", file)
		}
	})
	assert.GreaterOrEqual(t, seen, 7)
}
