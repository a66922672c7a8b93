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
	for name, inner := range map[string]hw.Provider{"over loop": loop.Provider{}, "over sim": simulated} {
		t.Run(name, func(t *testing.T) {
			hwtest.TestProvider(t, hwtest.Config{
				Provider: fault.Wrap(inner, fault.Config{}), Devices: [2]string{"one", "two"},
			})
			assert.Empty(t, simulated.Violations(), "the wrapper keeps to the contract too")
		})
	}
}
