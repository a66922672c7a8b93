package evd

import (
	"fmt"
	"time"
)

// DispatcherSnapshot describes a dispatcher at one moment. All counts only grow, and no
// [Dispatcher.ResetCounters] changes them.
type DispatcherSnapshot struct {
	Name string // as in String
	Mode string
	// Owner names the connection or listener whose events come here; empty for a dispatcher
	// that the program made.
	Owner string

	QLen     int // events that it has room for
	Reserved int // places that are reserved or have an event in them
	Queued   int // events that the consumer has not taken
	// OldestAge is for how long the oldest of these has waited, at least: since somebody took a
	// snapshot in which it was the oldest. So it is 0 in the first such snapshot, and no finer
	// than the time between two.
	OldestAge time.Duration

	Counters        // since the dispatcher was made
	Refused  uint64 // posts, and other reservations, that found no room

	Waiters int // goroutines in Wait or in an iterator; 0 of a channel, which does not tell
	// CallbackAge is for how long the callback that runs has run, at least, as OldestAge is.
	CallbackAge time.Duration

	// Latency has how long requests took that succeeded, from the post to the completion, those
	// of routes and one-shots among them. Only what was posted while somebody measured counts
	// (see [godat/runtime.IA.MeasureLatency]); it is nil if nothing was.
	Latency *HistogramSnapshot `json:",omitempty"`
}

// Snapshot describes the dispatcher now. It disturbs neither its consumer nor what feeds it.
// That of a nil dispatcher is empty.
func (d *Dispatcher) Snapshot() DispatcherSnapshot {
	if !d.isMade() {
		return DispatcherSnapshot{}
	}
	now := d.inner.Snapshot()
	s := DispatcherSnapshot{
		Name: d.String(), Mode: d.mode.String(),
		QLen: now.QLen, Reserved: now.Reserved, Queued: now.Queued, OldestAge: now.OldestAge,
		Counters: Counters(now.Counters), Refused: now.Refused,
		Waiters: now.Waiters, CallbackAge: now.CallbackAge,
		Latency: d.latency.Snapshot(),
	}
	if now.Owner != nil {
		s.Owner = fmt.Sprint(now.Owner)
	}
	return s
}
