package ep

import "sync/atomic"

// latch is a gate that is opened once, and that goroutines wait for. A channel does the
// same; a latch has one only while a goroutine waits, because an endpoint that nobody
// closes keeps its latch. The zero latch is shut.
type latch struct {
	// nil while the latch is shut and nobody waits, opened when it is open, and otherwise
	// the channel of those that wait.
	state atomic.Pointer[chan struct{}]
}

var opened = new(chan struct{})

// open opens the latch and wakes all that wait. It does nothing if the latch is open.
func (l *latch) open() {
	if c := l.state.Swap(opened); c != nil && c != opened {
		close(*c)
	}
}

// wait waits until the latch is open.
func (l *latch) wait() {
	c := l.state.Load()
	if c == nil {
		made := make(chan struct{})
		l.state.CompareAndSwap(nil, &made)
		c = l.state.Load()
	}
	if c != opened {
		<-*c
	}
}

// shut shuts the latch, for which nobody waits.
func (l *latch) shut() { l.state.Store(nil) }
