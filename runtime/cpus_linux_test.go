package runtime

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/hw"
	"godat/hw/sim"
)

// opener remembers the device that it opened last.
type opener struct {
	hw.Provider
	dev hw.Device
}

func (o *opener) Open(cfg hw.OpenConfig) (hw.Device, error) {
	dev, err := o.Provider.Open(cfg)
	o.dev = dev
	return dev, err
}

func TestOpenFailsIfThePollerCantRunOnItsCPUs(t *testing.T) {
	for _, cpus := range [][]int{{1 << 20}, {-1}, {1000}} {
		s := &opener{Provider: sim.New(sim.Config{})}
		_, err := Open(context.Background(), "sim", WithProvider(s), WithPoller(PollerConfig{CPUs: cpus}))
		require.ErrorIs(t, err, &hw.Error{Type: hw.InvalidParameter})
		require.ErrorContains(t, err, fmt.Sprint("PollerConfig.CPUs", cpus))
		require.NotNil(t, s.dev)
		require.ErrorIs(t, s.dev.Close(), hw.ErrInvalidHandle, "the device was left open")
	}
}
