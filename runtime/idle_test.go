package runtime

import (
	"bytes"
	goruntime "runtime"
	"strings"
	"testing"

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

func TestAnIdleAdapterHasNoGoroutine(t *testing.T) {
	for _, name := range []string{"loop", "iwarp:127.0.0.1"} {
		before := len(stacks())
		ia := open(t, name)
		pz, err := ia.NewPZ()
		require.NoError(t, err)
		_, err = pz.Alloc(4096, AllPrivileges)
		require.NoError(t, err)
		after := stacks()
		assert.LessOrEqual(t, len(after), before, "%s:\n%s", name, strings.Join(after, "\n\n"))
	}
}
