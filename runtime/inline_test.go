package runtime

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProgramsInlineTheShortMethods(t *testing.T) {
	if testing.Short() {
		return // it compiles the library
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("capability: the go command")
	}
	said, err := exec.CommandContext(t.Context(), tool, "build", "-gcflags=-m", "-o", t.TempDir(), "./testdata/inline").CombinedOutput()
	require.NoError(t, err, "%s", said)
	for _, method := range []string{
		"ep.(*Endpoint).PostSend", "ep.(*Endpoint).PostRecv", "ep.(*Endpoint).PostRDMAWrite", "ep.(*Endpoint).PostRDMARead",
		"evd.(*Dispatcher).Dequeue", "evd.(*Dispatcher).C", "evd.(*Batch).Events", "evd.(*Batch).Release",
	} {
		assert.True(t, strings.Contains(string(said), "inlining call to "+method+"\n"), method)
	}
}
