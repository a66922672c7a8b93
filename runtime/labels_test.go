package runtime

import (
	"bytes"
	"runtime/pprof"
	"runtime/trace"
	"strings"
	"testing"
	"time"

	"godat/evd"
	"godat/hw/event"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// labelsNow are the labels of all goroutines, in a profile of them.
func labelsNow(t testing.TB) string {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&text, 1))
	return text.String()
}

func TestAProfileTellsTheGoroutinesOfConnections(t *testing.T) {
	ia := open(t, "iwarp")
	_, client, server := both(t, ia, ConnConfig{Depth: 4, Message: 100})
	say(t, client, "hello")
	hear(t, server)
	all := labelsNow(t)
	for _, work := range []string{"iwarp: a connection", "iwarp: a listener"} {
		assert.Contains(t, all, `"godat":"`+work+`"`)
	}
}

// The pool's goroutine has no label behind the callback: it may be the program's.
func TestAProfileTellsWhoseCallbackRuns(t *testing.T) {
	ia := open(t, "loop")
	seen, profiled := make(chan struct{}), make(chan struct{})
	d, err := ia.NewDispatcher(evd.Config{QLen: 8, Mode: evd.ModeCallback, Streams: event.StreamSoftware, Callback: func([]event.Event) {
		close(seen)
		<-profiled
	}})
	require.NoError(t, err)
	require.NoError(t, d.PostSoftware(1))
	<-seen
	assert.Contains(t, labelsNow(t), `"dispatcher":"`+d.String()+`", "godat":"callback"`)
	close(profiled)
	require.NoError(t, d.Close())
	var all string
	require.Eventually(t, func() bool { // the task may end after its last callback
		all = labelsNow(t)
		return !strings.Contains(all, "(*upcalls).run")
	}, time.Minute, time.Millisecond)
	assert.NotContains(t, all, d.String())
}

func TestATraceHasATaskOfEachConnection(t *testing.T) {
	var text bytes.Buffer
	if trace.IsEnabled() {
		return // go test -trace has it
	}
	require.NoError(t, trace.Start(&text))
	ia := open(t, "loop")
	_, client, server := both(t, ia, ConnConfig{Depth: 4, Message: 100})
	require.NotNil(t, client.task)
	require.NotNil(t, server.task)
	trace.Stop()
	assert.Contains(t, text.String(), "godat.Conn")
	assert.Contains(t, text.String(), client.String())
}
