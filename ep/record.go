package ep

import (
	"sync/atomic"
	"time"

	"godat/ep/internal/line"
)

// record is what an endpoint remembers for those who look at it, by [Endpoint.Snapshot] and
// [Endpoint.Counters]. The successes of sends and receives do not touch it: their queues
// count them.
type record struct {
	made time.Time // immutable

	connects, disconnects counter
	requests, receives    counter // posts; under Mu

	silence atomic.Int64 // of the peer, in nanoseconds; see hw.SilenceFacts

	line.Cold // what the mailbox has of it; its Mu guards the rest, too

	since  time.Time // when the last connection was established
	story  story
	oldest [2]look  // of the oldest request, and of the oldest receive
	quiets *[2]look // of the successes of the requests, and of the receives; nil before the first snapshot
}
