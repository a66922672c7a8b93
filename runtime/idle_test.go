package runtime

import (
	"bytes"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"godat/hw"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stacks are the traces of all goroutines but the caller's.
func stacks() []string {
	buf := make([]byte, 1<<20)
	all := bytes.Split(buf[:goruntime.Stack(buf, true)], []byte("\n\n"))
	var others []string
	for _, one := range all[1:] {
		others = append(others, string(one))
	}
	return others
}

// numberOf is the beginning of a trace, which names the goroutine.
func numberOf(trace string) string {
	number, _, _ := strings.Cut(trace, " [")
	return number
}

func TestAnIdleAdapterHasNoGoroutine(t *testing.T) {
	for _, name := range []string{"loop", "iwarp:127.0.0.1"} {
		before := map[string]bool{}
		for _, one := range stacks() {
			before[numberOf(one)] = true
		}
		ia := open(t, name)
		pz, err := ia.NewPZ()
		require.NoError(t, err)
		_, err = pz.Alloc(4096, hw.AllPrivileges)
		require.NoError(t, err)
		var after []string
		assert.Eventually(t, func() bool { // what began meanwhile may be another test's, and ends
			after = slices.DeleteFunc(stacks(), func(one string) bool { return before[numberOf(one)] || strings.Contains(one, "Eventually") })
			return len(after) == 0
		}, time.Minute, time.Millisecond, name)
		assert.Empty(t, after, name)
	}
}
