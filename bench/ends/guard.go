package ends

import (
	"sync"
	"time"
)

// guard calls a function after a time, unless it is stopped before. It counts the time in looks of a second, so a pause of the
// process (Ctrl-Z), which also pauses what it waits for, counts as one look, however long it was.
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

// stop ends the guard, and reports whether the function was not called.
func (g *guard) stop() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	inTime := !g.over
	g.over = true
	g.timer.Stop()
	return inTime
}
