package target

import "sync/atomic"

// counters count what all queues of a target did. Queues add theirs when they flush, so
// that they don't share a cache line for each command.
type counters struct {
	connections                     atomic.Uint64
	reads, writes, others, failures atomic.Uint64
	bytesRead, bytesWritten         atomic.Uint64
}

// Counters are what a target has done since it began.
type Counters struct {
	Queues                  uint64 // connected, ever
	Reads, Writes           uint64 // commands that succeeded
	Others                  uint64 // other commands that succeeded
	Failures                uint64 // commands that were completed with an error
	BytesRead, BytesWritten uint64
}

// Counters returns the counters. It may be called at any time.
func (t *Target) Counters() Counters {
	c := &t.counters
	return Counters{
		Queues: c.connections.Load(), Reads: c.reads.Load(), Writes: c.writes.Load(), Others: c.others.Load(),
		Failures: c.failures.Load(), BytesRead: c.bytesRead.Load(), BytesWritten: c.bytesWritten.Load(),
	}
}
