package sim_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"godat/hw"
	"godat/hw/hwtest"
	"godat/hw/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSimKeepsTheContract(t *testing.T) {
	const implied = hwtest.ImpliedLocalRead | hwtest.ImpliedLocalWrite
	for name, c := range map[string]struct {
		cfg    sim.Config
		gaps   hwtest.Gap
		groups []string // the groups that the setting affects; nil means all
		whole  bool     // run all groups, unless with -short
		paired bool
	}{
		"as it comes":               {sim.Config{Seed: 1}, 0, nil, true, false},
		"without delay":             {sim.Config{Seed: 2, MaxDelay: -1}, 0, []string{"connect", "srq"}, true, false},
		"very late, in tiny chunks": {sim.Config{Seed: 3, MaxDelay: 40, Chunk: 4 << 10}, 0, []string{"deregister", "traffic"}, true, false},
		"as iWARP does":             {sim.Config{Seed: 4, NoNotReadyWait: true, EarlyCompletion: true}, hwtest.EarlyCompletion, []string{"failure", "gap"}, true, false},
		"without waiting":           {sim.Config{Seed: 5, NoNotReadyWait: true}, 0, []string{"deregister", "failure", "end"}, false, false},
		"as verbs does":             {sim.Config{Seed: 6, ImpliedLocalRead: true, ImpliedLocalWrite: true}, implied, []string{"memory", "gap"}, false, false},
		"sends alone":               {sim.Config{Seed: 7, Ops: hw.Ops(hw.OpSend)}, 0, []string{"device", "send", "rdma", "end"}, false, false},
		"paired":                    {sim.Config{Seed: 8}, 0, []string{"pair", "failure", "end"}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if c.whole && !testing.Short() {
				c.groups = nil
			}
			if c.groups != nil && !slices.Contains(c.groups, "device") {
				t.Parallel() // the cases wait much of their time; one of group device counts the goroutines
			}
			p := sim.New(c.cfg)
			hwtest.TestProvider(t, hwtest.Config{Provider: p, Devices: [2]string{"one", "two"}, Gaps: c.gaps, Groups: c.groups, Paired: c.paired})
			assert.Empty(t, p.Violations(), "the suite keeps to the contract too")
		})
	}
}
