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

// MeasuresLatency reports whether somebody measures, by [IA.MeasureLatency] or [WithLatency]: for a
// program or a package that measures what it does itself at the same times, as package rpc does.
// It takes a nanosecond, and is false of a nil adapter.
func (ia *IA) MeasuresLatency() bool {
	return ia != nil && !ia.isZero() && ia.adapter.MeasuresLatency(door.Key{})
}

// WithLatency measures as [IA.MeasureLatency] does for as long as the adapter is open.
func WithLatency() Option { return func(c *config) { c.latency = true } }
