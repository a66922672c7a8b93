package polling

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"godat/hw"
)

// whereabouts records the processors on which the polling thread may run.
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

func TestThePollersThreadRunsOnItsCPUs(t *testing.T) {
	var may unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &may))
	cpu := 0
	for !may.IsSet(cpu) {
		cpu++
	}
	dev := &whereabouts{newPolled(), make(chan unix.CPUSet, 1)}
	p := newPoller(dev, Config{CPUs: []int{cpu}}, func(hw.AsyncEvent) {})
	require.NoError(t, p.start())
	set := <-dev.sets
	p.stop()
	assert.Equal(t, 1, set.Count())
	assert.True(t, set.IsSet(cpu))
	var now unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &now))
	assert.Equal(t, may, now, "another thread's affinity changed")
}
