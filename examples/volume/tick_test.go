package main

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnElectionTakesTenTicks(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const tick = 400 * time.Millisecond
	begun := time.Now()
	c.run(1, []string{
		"serve", "--create", "--id=1", "--peers=1=" + c.peers[0], "--listen=" + c.listens[0], "--data=" + string(c.disk(1)),
		"--size=1M", "--slots=1", "--slot-size=64K", fmt.Sprintf("--tick=%v", tick),
	})
	require.Equal(t, 1, c.leader())
	assert.GreaterOrEqual(t, time.Since(begun), 10*tick) // with a tick of 100 ms, 1 to 2 s
}

func TestATickHasBounds(t *testing.T) {
	for _, tick := range []time.Duration{-time.Second, 0, shortestTick - 1, longestTick + 1} {
		o := &options{Serve: serveOptions{adapterOptions: adapterOptions{Provider: "iwarp"}, Listen: "127.0.0.1:0", volumeOptions: volumeOptions{Tick: &tick}, Data: []string{t.TempDir()}}}
		require.ErrorContains(t, serve(t.Context(), o, io.Discard, io.Discard), "--tick", "%v", tick)
	}
	for _, tick := range []time.Duration{shortestTick, longestTick} {
		o := &options{Serve: serveOptions{adapterOptions: adapterOptions{Provider: "iwarp"}, Listen: "127.0.0.1:0", volumeOptions: volumeOptions{Tick: &tick}, Data: []string{t.TempDir()}}}
		require.ErrorContains(t, serve(t.Context(), o, io.Discard, io.Discard), "create makes a new volume", "%v", tick)
	}
}
