package target

import "time"

// keepAliveEvery sets how long the host may be silent; 0 means for ever. The target may
// take up to twice as long to notice, as a command counts for the whole time it came in.
func (a *admin) keepAliveEvery(d time.Duration) {
	a.keepAlive = d
	a.alive()
}

// alive begins the Keep Alive time anew.
func (a *admin) alive() {
	if a.keepAlive > 0 {
		a.q.limit.set(a.keepAlive)
	} else {
		a.q.limit.timer.Stop()
	}
}

// expired reports whether the host was silent for the Keep Alive time, on all queues.
// Any command keeps the controller alive: a host may be slow to send its first Keep
// Alive, and Linux sends none while others complete.
func (a *admin) expired() bool { return a.keepAlive > 0 && !a.q.controller.busy.Swap(false) }
