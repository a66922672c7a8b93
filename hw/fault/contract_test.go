package fault_test

import (
	"fmt"
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
	// What the wrapper does itself, in two parts, since the cases wait much of their
	// time.
	parts := [][]string{{"polled", "srq", "send"}, {"connect", "failure", "end"}}
	if !testing.Short() {
		parts = [][]string{nil} // everything
		t.Run("over loop", func(t *testing.T) { keepsTheContract(t, loop.New(), nil) })
	}
	for i, groups := range parts {
		t.Run(fmt.Sprint("over sim, part ", i), func(t *testing.T) {
			if groups != nil {
				t.Parallel()
			}
			simulated := sim.New(sim.Config{Seed: 1})
			keepsTheContract(t, simulated, groups)
			assert.Empty(t, simulated.Violations(), "the wrapper keeps to the contract too")
		})
	}
}

func keepsTheContract(t *testing.T, inner hw.Provider, groups []string) {
	hwtest.TestProvider(t, hwtest.Config{
		Provider: fault.Wrap(inner, fault.Config{}), Devices: [2]string{"one", "two"}, Groups: groups,
	})
}
