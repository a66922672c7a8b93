package load

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/bench/host"
	"godat/bench/lane"
)

// burning is a channel whose consumer uses the processor for each message until the
// system has counted a time for it.
type burning struct {
	*lane.Channel
	each   time.Duration
	burned time.Duration
}

func (b *burning) Take(f func(int) bool) error {
	return b.Channel.Take(func(slot int) bool {
		began, _ := host.ProcessorTime()
		now := began
		for now < began+b.each {
			now, _ = host.ProcessorTime()
		}
		b.burned += now - began
		return f(slot)
	})
}

// The system's count only grows, so that the count of a span lies between those of a span
// inside and of a span around, however busy the machine is.
func TestTheProcessorTimeOfARunIsWhatTheSystemCounts(t *testing.T) {
	before, known := host.ProcessorTime()
	if !known {
		t.Skip("this system counts no processor time")
	}
	b := &burning{Channel: lane.NewChannel(1), each: time.Millisecond}
	r, err := NewDriver(b, 1).Run(Load{Rate: Closed, Depth: 1, Duration: 20 * time.Millisecond})
	require.NoError(t, err)
	after, _ := host.ProcessorTime()
	assert.GreaterOrEqual(t, r.Processor, b.burned)
	assert.LessOrEqual(t, r.Processor, after-before)
	assert.GreaterOrEqual(t, r.Processor/time.Duration(r.Count), b.each, "an operation has at least what its consumer used")
}

func TestTheWaitForIntendedTimesIsNoProcessorTimeOfTheRun(t *testing.T) {
	before, known := host.ProcessorTime()
	if !known {
		t.Skip("this system counts no processor time")
	}
	d := NewDriver(lane.NewChannel(1), 1)
	d.pace = func(base time.Time, until time.Duration) int64 { return 1000 + spin(base, until) }
	r, err := d.Run(Load{Rate: 100, Depth: 1, Duration: 30 * time.Millisecond})
	require.NoError(t, err)
	after, _ := host.ProcessorTime()
	assert.Positive(t, r.Pacing)
	assert.LessOrEqual(t, r.Processor, max(0, after-before-r.Pacing))
}
