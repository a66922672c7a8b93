//go:build unix

package tool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/bench/load"
)

// shell is a tool whose server and client are lines of a shell. The client has the count
// of its turn in $0.
func shell(server, client string) *Tool {
	return &Tool{
		Binary: "sh", ready: "ready", stays: true,
		server: func(turn) []string { return args("-c", server) },
		client: func(t turn) []string { return args("-c", client, t.count) },
		read:   readUCX(true),
	}
}

const (
	waits = "echo ready; exec sleep 60"
	// Round trips of 100 µs.
	tells = `echo "$0 40 50 50 1 1 10000 10000"`
)

var tenth = load.Load{Duration: 100 * time.Millisecond}

func TestATurnHasAsManyMessagesAsFillItsTime(t *testing.T) {
	r, err := shell(waits, tells).Start(64, 1)
	require.NoError(t, err)
	for _, count := range []int64{fewest, 1000, 1000} {
		res, err := r.Run(tenth)
		require.NoError(t, err)
		assert.Equal(t, count, res.Count)
		assert.Equal(t, 80*time.Microsecond, res.Median)
		assert.Equal(t, 100*time.Microsecond, res.Mean)
		assert.InDelta(t, time.Duration(count)*100*time.Microsecond, res.Took, 10)
		assert.Nil(t, res.Latency)
	}
	require.NoError(t, r.Close())
}

func TestAServerThatEndsByItselfIsWaitedFor(t *testing.T) {
	tool := shell("echo ready; exec sleep 0.01", tells)
	tool.stays = false
	r, err := tool.Start(64, 1)
	require.NoError(t, err)
	_, err = r.Run(tenth)
	assert.NoError(t, err)
}

func TestAToolThatFailsIsRefusedWithItsLastWords(t *testing.T) {
	for what, c := range map[string]struct {
		tool *Tool
		why  string
	}{
		"the client":            {shell(waits, "echo no device; exit 3"), "no device"},
		"the server":            {shell("echo no memory; exit 3", tells), "no memory"},
		"a server that is gone": {shell("exit 0", tells), "the server has ended"},
		"the client's words":    {shell(waits, "echo hello"), "hello"},
	} {
		r, err := c.tool.Start(64, 1)
		require.NoError(t, err)
		_, err = r.Run(tenth)
		var refusal load.Refusal
		require.ErrorAs(t, err, &refusal, what)
		assert.ErrorContains(t, err, c.why, what)
	}
}
