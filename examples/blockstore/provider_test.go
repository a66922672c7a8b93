package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/event"
	"godat/hw/fault"
	"godat/hw/sim"
	"godat/runtime/rpc"
)

func register(t *testing.T, p hw.Provider) {
	t.Helper()
	require.NoError(t, hw.Register(p))
	t.Cleanup(func() { assert.NoError(t, hw.Unregister(p.Name())) })
}

// The simulated device completes late, and into queues that must be polled: the other
// kind of provider.
func TestTheSameProgramRunsOnAPolledDevice(t *testing.T) {
	register(t, sim.New(sim.Config{Seed: 1}))
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), newOptions(t, "-provider", "sim", "-dir", newTree(t)), &out))
	assert.Contains(t, out.String(), "verified 8 files")
}

func TestTheSameProgramRunsOverTCP(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), newOptions(t, "-provider", "iwarp:127.0.0.1", "-dir", newTree(t)), &out))
	assert.Contains(t, out.String(), "verified 8 files")
}

func TestAFailingProviderEndsTheRunWithAnErrorAndNoLeak(t *testing.T) {
	for kind, tc := range map[fault.Kind]struct {
		nth  int
		want error
	}{
		fault.FailSend:     {20, rpc.ErrEnded},
		fault.FailRecv:     {1, rpc.ErrEnded}, // a later one may get no message
		fault.BreakConn:    {30, rpc.ErrEnded},
		fault.LosePeer:     {20, rpc.ErrEnded},
		fault.FailRegister: {4, hw.ErrInsufficientResources},
		fault.FailNewQP:    {2, event.Error(event.PeerRejected)}, // the server's queue pair: the server then has no room
		fault.FailConnect:  {1, hw.ErrInsufficientResources},
	} {
		t.Run(kind.String(), func(t *testing.T) {
			cfg := fault.Config{Seed: 1}
			cfg.On[kind].Nth = tc.nth
			flaky := fault.Wrap(sim.New(sim.Config{Name: "flaky", Seed: 1}), cfg)
			register(t, flaky)
			err := run(t.Context(), newOptions(t, "-provider", "flaky", "-dir", newTree(t)), io.Discard)
			assert.NotZero(t, flaky.Fired(kind))
			require.ErrorIs(t, err, tc.want)
			t.Log(err)
		})
	}
}
