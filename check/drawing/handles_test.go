package drawing

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// eachSource calls f with the text of each Go file of the repository that is no test.
func eachSource(t *testing.T, f func(file, text string)) {
	t.Helper()
	eachGo(t, func(file, _ string) {
		if !strings.HasSuffix(file, "_test.go") {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			f(file, string(text))
		}
	})
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
