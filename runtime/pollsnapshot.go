package runtime

import "godat/hw"

// PollSnapshot says how the completions of an adapter's device have been noticed since the adapter
// was opened: what polled, how often it found something, and how often it slept instead.
type PollSnapshot struct {
	// Way says what polls at this moment:
	//
	//	"thread"     a thread of its own, which hands completions to the dispatchers' deliverers
	//	"goroutine"  one goroutine, which delivers, too
	//	"consumers"  callers of Dequeue and Wait, and a goroutine while they don't
	//	"sockets"    nothing: Go's scheduler wakes a goroutine for each connection; consumers
	//	             that find nothing read sockets themselves
	Way string
	hw.PollCounts
}

// describePolls is nil for a device whose completions nobody notices by polls or sleeps.
func (ia *IA) describePolls() *PollSnapshot {
	if ia.polling != nil {
		return &PollSnapshot{ia.polling.Way(), ia.polling.Counts()}
	}
	if d, ok := ia.dev.(hw.PollCounter); ok {
		return &PollSnapshot{"sockets", d.PollCounts()}
	}
	return nil
}
