package loop_test

import (
	"testing"

	"godat/hw/hwtest"
	"godat/hw/loop"
)

func TestContract(t *testing.T) {
	pairs := map[string][2]string{
		"two devices":                 {"one", "two"},
		"two that share their name":   {"same", "same"},
		"the default and another one": {"", "other"},
	}
	if testing.Short() {
		pairs = map[string][2]string{"two devices": pairs["two devices"]}
	}
	for name, devices := range pairs {
		t.Run(name, func(t *testing.T) {
			hwtest.TestProvider(t, hwtest.Config{Provider: loop.New(), Devices: devices})
		})
	}
	t.Run("direct", func(t *testing.T) {
		hwtest.TestProvider(t, hwtest.Config{Provider: loop.New(), Devices: [2]string{"one", "two"}, Runs: true})
	})
	t.Run("paired", func(t *testing.T) {
		hwtest.TestProvider(t, hwtest.Config{Provider: loop.New(), Devices: [2]string{"one", "two"}, Runs: true, Paired: true})
	})
}
