package fault_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"godat/hw"
	"godat/hw/fault"
	"godat/hw/hwtest"
	"godat/hw/loop"
	"godat/hw/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFaultWithoutFaultsKeepsTheContract(t *testing.T) {
	simulated := sim.New(sim.Config{Seed: 1})
	providers := map[string]hw.Provider{"over sim": simulated}
	if !testing.Short() {
		providers["over loop"] = loop.Provider{}
	}
	for name, inner := range providers {
		t.Run(name, func(t *testing.T) {
			hwtest.TestProvider(t, hwtest.Config{
				Provider: fault.Wrap(inner, fault.Config{}), Devices: [2]string{"one", "two"},
			})
			assert.Empty(t, simulated.Violations(), "the wrapper keeps to the contract too")
		})
	}
}
