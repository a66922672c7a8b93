package ep

import (
	"sync/atomic"
	"time"

	"godat/ep/internal/life"
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

	since  time.Duration // from made to the establishment of the last connection; 0 before the first
	story  story
	oldest [2]look  // of the oldest request, and of the oldest receive
	quiets *[2]look // of the successes of the requests, and of the receives; nil before the first snapshot
}

// note adds a chapter to the story, or counts it, if the last one tells the same.
func (r *record) note(c chapter) {
	now := time.Now()
	c.at, c.times = now.UnixNano(), 1
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if c.what == what(life.InEstablished) || c.what == what(life.InFirstData) {
		r.since = max(now.Sub(r.made), 1)
		r.silence.Store(0)
	}
	r.story.add(c)
}

// counters reads the counters. Those of the posts follow from the queues' tickets.
func (r *record) counters(box *line.Mailbox, read func(*counter) uint64) EndpointCounters {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.requests.whole.Store(box.Requests.Counts().Posted)
	r.receives.whole.Store(box.Recvs.Counts().Posted)
	return EndpointCounters{
		Connects: read(&r.connects), Disconnects: read(&r.disconnects),
		Requests: read(&r.requests), Receives: read(&r.receives),
	}
}

// look is when a snapshot first saw a number of a queue, such as that of its oldest operation;
// record.Mu guards it. The data path reads no clock, so nothing else tells an operation's age.
type look struct {
	number uint64
	at     time.Time
}

// age says for how long at least the number has been this one.
func (l *look) age(number uint64, now time.Time) time.Duration {
	if l.at.IsZero() || l.number != number {
		*l = look{number, now}
	}
	return now.Sub(l.at)
}
