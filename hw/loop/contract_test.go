package loop_test

import (
	"testing"

	"godat/hw/hwtest"
	"godat/hw/loop"
)

func TestContract(t *testing.T) {
	for name, devices := range map[string][2]string{
		"two devices":                 {"one", "two"},
		"two that share their name":   {"same", "same"},
		"the default and another one": {"", "other"},
	} {
		t.Run(name, func(t *testing.T) {
			hwtest.TestProvider(t, hwtest.Config{Provider: loop.Provider{}, Devices: devices})
		})
	}
}
