package polling

import "godat/internal/delivery"

// consumed is what the back-stop has seen of the consumers.
type consumed struct {
	by     *delivery.Consumer // polled last, and none has gone to sleep since; or nil
	taken  uint64             // events that it had taken at the last look
	polls  uint64             // of consumers, at the last look
	found  uint64             // of these, those that found completions
	inVain int                // looks in a row at which consumers had found completions, and the back-stop none
}

const (
	// enoughInVain is how often consumers must have been before the back-stop.
	enoughInVain = 2
	// enoughPolls is how often consumers must poll in a drivenPeriod to keep the device.
	enoughPolls = 16
)

// consumersHaveIt reports whether the back-stop leaves the device to the consumers: because
// they find completions before it does; and as long as they poll, or take the events that they
// have. A back-stop that took over would fill the queue of a consumer that is busy with events
// beside it, and so keep it from polling for good.
func (d *driver) consumersHaveIt() bool {
	c := &d.consumed
	slept := d.slept.Swap(false)
	by := d.driven.Swap(nil)
	found, polls := d.counts.consumed.Load(), d.counts.consumers.Load()
	often := polls-c.polls >= enoughPolls
	if found != c.found {
		c.inVain++
	}
	c.found, c.polls = found, polls
	if slept {
		c.by, c.inVain = nil, 0
	}
	takes := false
	if c.by != nil {
		before := c.taken
		c.taken = c.by.Taken()
		takes = c.taken != before
	}
	if by != nil {
		c.by, c.taken = by, by.Taken()
	}
	switch away := d.away.Load(); {
	case by != nil && (away && often || !away && c.inVain >= enoughInVain):
		return true
	case takes && away:
		d.tryPoll() // for others: the consumer does not poll while it finds events
		return true
	}
	return false
}
