package stream

import (
	"time"

	"godat/internal/yield"
)

// A Read that has emptied the ring, or had its buffer filled, has a report to make. Behind
// the report the peer writes on, into the ring, although the next Read may be about to
// offer a better place. So where Reads follow each other at once, the report of a large one
// waits for the next one's offer, which says the same: the bytes of that go straight to
// where they belong, and a message is saved. If no Read follows, the report goes late, by a
// timer, so that a peer waits for no more than longestHold.
//
// The same timer makes what is due while the program is in no call: a report that found no
// credit or slot when the program read, and the grants of receives whose messages came since.
const (
	promptly    = 50 * time.Microsecond
	longestHold = time.Millisecond
)

// holding is what is known of reports that could wait. The holder of Conn.reading writes it.
type holding struct {
	since  time.Time // when the newest Read ended that had such a report; zero once the next began
	prompt bool      // the Read behind the one before came promptly
}

// resume begins a Read of a connection that has made an offer, and records how long after
// such a report that is.
func (h *holding) resume() {
	if !h.since.IsZero() {
		h.prompt = time.Since(h.since) < promptly
		h.since = time.Time{}
	}
}

// hold reports whether the report that is due may wait for the next Read. Nothing but the
// bytes read is due in it: neither receives nor a ring.
func (c *line) hold() bool {
	in := &c.flow.in
	switch at := in.consumed.Load(); {
	case in.produced.Load() != at || at < in.from || in.mem != nil || in.region == nil || in.refused:
		return false // the next Read has bytes, or makes no offer
	case in.offer.Load() == offerMade || c.flow.grantsDue() || in.received.Load()-in.reposted.Load() >= messages/2:
		return false
	}
	in.since = time.Now()
	if !in.prompt {
		return false
	}
	c.late.Reset(longestHold)
	return true
}

// reportSoon has the report made that is due now, unless a call makes it before. The goroutine
// that completes operations calls it.
func (c *line) reportSoon() {
	if !c.owed.Load() && c.owed.CompareAndSwap(false, true) {
		c.late.Reset(longestHold)
	}
}

// reportLate makes a report that waits for a Read, or that no call makes. It is the function of
// a timer, and may come when the report was made, or the connection is over. What becomes due
// after it has cleared owed sets the timer once more.
func (c *line) reportLate() {
	c.owed.Store(false)
	yield.Point()
	if !c.closed.Load() {
		c.report()
	}
}
