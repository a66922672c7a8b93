package runtime

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"godat/hw"
	"godat/hw/sim"
)

// whereabouts tells on which processors the thread may run that polls it.
type whereabouts struct {
	*polled
	sets chan unix.CPUSet
}

func (d *whereabouts) Poll([]hw.WC) int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) == nil {
		select {
		case d.sets <- set:
		default:
		}
	}
	return 0
}

func TestThePollersThreadRunsWhereItIsTold(t *testing.T) {
	var may unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &may))
	cpu := 0
	for !may.IsSet(cpu) {
		cpu++
	}
	dev := &whereabouts{newPolled(), make(chan unix.CPUSet, 1)}
	p := newPoller(dev, PollerConfig{CPUs: []int{cpu}}, func(hw.AsyncEvent) {})
	require.NoError(t, p.start())
	set := <-dev.sets
	p.stop()
	assert.Equal(t, 1, set.Count())
	assert.True(t, set.IsSet(cpu))
	var now unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &now))
	assert.Equal(t, may, now, "another thread's affinity changed")
}

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

func TestAPollerThatCantRunWhereItShallFailsOpen(t *testing.T) {
	for _, cpus := range [][]int{{1 << 20}, {-1}, {1000}} {
		s := &opener{Provider: sim.New(sim.Config{})}
		_, err := Open(context.Background(), "sim", WithProvider(s), WithPoller(PollerConfig{CPUs: cpus}))
		require.Error(t, err)
		require.NotNil(t, s.dev)
		require.ErrorIs(t, s.dev.Close(), ErrInvalidHandle, "the device was left open")
	}
}
