package runtime

import (
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/hw/sim"
)

func TestASnapshotSaysWhatPolls(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(2))
	polled := func(cfg PollerConfig) []Option {
		return []Option{WithProvider(sim.New(sim.Config{})), WithPoller(cfg)}
	}
	for name, tc := range map[string]struct {
		provider string
		options  []Option
		way      string
	}{
		"loop":    {"loop", nil, ""},
		"iwarp":   {"iwarp", nil, "sockets"},
		"default": {"sim", polled(PollerConfig{}), "goroutine"},
		"pinned":  {"sim", polled(PollerConfig{CPUs: allCPUs()}), pinnedWay},
	} {
		t.Run(name, func(t *testing.T) {
			ia := open(t, tc.provider, tc.options...)
			if tc.way == "" {
				assert.Nil(t, snapshot(t, ia).Polls)
				return
			}
			assert.Equal(t, tc.way, snapshot(t, ia).Polls.Way)
			_, client, server := both(t, ia, ConnConfig{Depth: 4, Message: 100})
			asleep := func() bool { return ia.polling == nil || ia.polling.Asleep() }
			require.Eventually(t, asleep, time.Minute, time.Millisecond)
			before := *snapshot(t, ia).Polls
			for range 3 {
				say(t, client, "something")
				hear(t, server)
				require.Eventually(t, asleep, time.Minute, time.Millisecond)
			}
			after := *snapshot(t, ia).Polls
			assert.Greater(t, after.Waits, before.Waits, "the device slept before")
			if tc.way != "sockets" {
				assert.Greater(t, after.Found, before.Found)
				assert.Greater(t, after.Arms, before.Arms)
			}
		})
	}
}
