package sim

import "sync/atomic"

// Calls counts the calls of a device that would each cross into a driver, and what they
// carried.
type Calls struct {
	PostSends, Sends uint64 // calls of PostSend, and requests posted
	PostRecvs, Recvs uint64 // calls of PostRecv, and receives posted; shared queues are not counted
	Polls            uint64
	Arms             uint64
	Waits            uint64
}

// calls is Calls as it is kept.
type calls struct {
	posts              Calls // guarded by sim.mu; only the posts
	polls, arms, waits atomic.Uint64
}

// Calls returns the counts since the device was opened. Any goroutine may call it.
func (d *Device) Calls() Calls {
	d.sim.mu.Lock()
	c := d.calls.posts
	d.sim.mu.Unlock()
	c.Polls, c.Arms, c.Waits = d.calls.polls.Load(), d.calls.arms.Load(), d.calls.waits.Load()
	return c
}
