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
		t.Skip("capability: this system counts no processor time")
	}
	b := &burning{Channel: lane.NewChannel(1), each: time.Millisecond}
	r, err := NewDriver(b, 1).Run(Load{Rate: Closed, Depth: 1, Duration: 20 * time.Millisecond})
	require.NoError(t, err)
	after, _ := host.ProcessorTime()
	assert.GreaterOrEqual(t, r.Processor, b.burned)
	assert.LessOrEqual(t, r.Processor, after-before)
	assert.GreaterOrEqual(t, r.Processor/time.Duration(r.Count), b.each, "an operation has at least what its consumer used")
}

// A poster that burns its wait leaves the run what the system has counted beside.
func TestTheWaitForIntendedTimesIsNoProcessorTimeOfTheRun(t *testing.T) {
	before, known := host.ProcessorTime()
	if _, also := host.ThreadTime(); !known || !also {
		t.Skip("capability: this system counts no processor time of threads")
	}
	d := NewDriver(lane.NewChannel(1), 1)
	var waited, early time.Duration
	d.pace = func(base time.Time, until time.Duration) {
		if until-time.Since(base) < time.Millisecond { // what is left of a wait, or a message that is late
			if early > 0 {
				assert.Equal(t, threadClockCost(), until-early, "the clock is read before the post is due")
			}
			early = 0
			spin(base, until)
			return
		}
		early = until
		began, _ := host.ThreadTime()
		spin(base, until)
		now, _ := host.ThreadTime()
		waited += now - began
	}
	r, err := d.Run(Load{Rate: 20, Depth: 1, Duration: 120 * time.Millisecond})
	require.NoError(t, err)
	after, _ := host.ProcessorTime()
	assert.Positive(t, waited)
	assert.GreaterOrEqual(t, r.Waits, waited, "what the wait took, and what its clock took")
	assert.LessOrEqual(t, r.Waits+r.Processor, after-before)
}

// At a million a second the clock of a thread would take most of the wait.
func TestAWaitThatIsTooShortToBeTimedLeavesNoProcessorTime(t *testing.T) {
	if _, known := host.ThreadTime(); !known {
		t.Skip("capability: this system counts no processor time of threads")
	}
	for producers, loads := range map[int]map[Rate]bool{1: {100_000: true, 200_000: true, 1_000_000: false, Closed: false, Max: false}, 10: {1_000_000: true}} {
		for rate, timed := range loads {
			assert.Equal(t, timed, Load{Rate: rate}.timed(producers), "%s by %d", rate, producers)
		}
	}
	r, err := NewDriver(lane.NewChannel(1), 1).Run(Load{Rate: 1_000_000, Depth: 1, Duration: time.Millisecond})
	require.NoError(t, err)
	assert.Negative(t, r.Processor)
}
