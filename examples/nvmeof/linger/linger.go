// Package linger keeps a goroutine awake for a moment before it sleeps.
//
// Where the other end of a connection has a processor of its own, a sleep and the wake-up
// that ends it take both ends microseconds. With many commands under way the other end is
// about to have something, and a goroutine that lingers does not sleep.
package linger

import "runtime"

// A Waiter lingers before waits. One goroutine uses it.
type Waiter struct {
	// Immutable.
	ready  func() bool
	rounds int // of one linger

	vain  int // lingers in a row that were in vain, up to mostVain
	skips int // lingers to leave out
}

const (
	// mostRounds take some 30 µs: about what the other end takes for a batch of commands.
	mostRounds = 300
	// mostVain bounds how many lingers are left out: 1<<mostVain - 2.
	mostVain = 6
)

// On returns a Waiter for a goroutine that waits until ready reports true. On a single
// processor it lets others run once: the other end may be among them, and a goroutine that
// yields takes less than one that sleeps and is woken.
func On(ready func() bool) Waiter {
	w := Waiter{ready: ready, rounds: 1}
	if runtime.GOMAXPROCS(0) > 1 {
		w.rounds = mostRounds
	}
	return w
}

// Linger lets others run, for a moment at most, until there is something. Where that was
// in vain several times in a row, it leaves out more and more lingers, so a peer that is
// slow costs next to nothing.
func (w *Waiter) Linger() {
	switch {
	case w.ready():
		return
	case w.skips > 0:
		w.skips--
		return
	}
	for range w.rounds {
		runtime.Gosched()
		if w.ready() {
			w.vain = 0
			return
		}
	}
	w.vain = min(w.vain+1, mostVain)
	w.skips = 1<<w.vain - 2
}
