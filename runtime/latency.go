package runtime

import "godat/internal/door"

// MeasureLatency has each dispatcher measure how long requests take, until stop is called: their
// times are in [IA.Snapshot], as Latency of the dispatcher. While somebody measures, a request
// takes two more looks at the clock and goes no short way, so one over loop is dearer. Any number
// may measure at the same time. A closed adapter is INVALID_HANDLE/IA.
func (ia *IA) MeasureLatency() (stop func(), err error) {
	if err := ia.enter("runtime.IA.MeasureLatency"); err != nil {
		return nil, err
	}
	defer ia.gate.RUnlock()
	return ia.adapter.MeasureLatency(door.Key{}), nil
}

// WithLatency measures as [IA.MeasureLatency] does for as long as the adapter is open.
func WithLatency() Option { return func(c *config) { c.latency = true } }
