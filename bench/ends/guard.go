package ends

import (
	"sync"
	"time"
)

// guard calls a function unless it is stopped in time. A process that is paused, as by Ctrl-Z, finds its timers
// late when it goes on, and what it waits for may have been paused, too: so a look that comes late counts as
// any other.
type guard struct {
	call func()

	mu    sync.Mutex
	timer *time.Timer
	left  time.Duration
	over  bool
}

// look is the time between two looks.
const look = time.Second

func newGuard(d time.Duration, call func()) *guard {
	g := &guard{call: call, left: d}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timer = time.AfterFunc(min(look, d), g.look)
	return g
}

func (g *guard) look() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.left -= look
	switch {
	case g.over:
	case g.left > 0:
		g.timer.Reset(min(look, g.left))
	default:
		g.over = true
		g.call()
	}
}

// stop reports whether it is in time.
func (g *guard) stop() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	inTime := !g.over
	g.over = true
	g.timer.Stop()
	return inTime
}
