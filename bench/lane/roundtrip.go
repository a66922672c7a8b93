package lane

import "errors"

// RoundTrip is two lanes, with a goroutine that sends back on one what it takes from the
// other.
type RoundTrip struct {
	there, back Lane
	done        chan struct{}
}

// NewRoundTrip makes a round trip of two lanes.
func NewRoundTrip(there, back Lane) *RoundTrip {
	l := &RoundTrip{there: there, back: back, done: make(chan struct{})}
	go l.echo()
	return l
}

// echo answers until a lane is closed.
func (l *RoundTrip) echo() {
	defer close(l.done)
	_ = l.there.Take(func(slot int) bool { return l.back.Post(slot) == nil })
}

// Slots is that of the lane back.
func (l *RoundTrip) Slots() int { return l.back.Slots() }

// Post sends a message there.
func (l *RoundTrip) Post(slot int) error { return l.there.Post(slot) }

// Take takes what comes back.
func (l *RoundTrip) Take(f func(slot int) bool) error { return l.back.Take(f) }

// PostBlocks reports whether a post there waits while the answer to another one waits
// for the poster.
func (l *RoundTrip) PostBlocks(depth int) bool {
	b, ok := l.there.(Blocker)
	return ok && depth > 1 && b.PostBlocks(depth)
}

// Close closes both lanes.
func (l *RoundTrip) Close() error {
	err := errors.Join(l.there.Close(), l.back.Close())
	<-l.done
	return err
}
