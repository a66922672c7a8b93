package line

import (
	"sync"
	"sync/atomic"
	"weak"

	"godat/internal/workers"
)

// Crew is what the mailboxes of an adapter have together: workers, which serve what posters leave (see
// handOver), the place where posters sleep, and rules that are alike.
type Crew struct {
	workers  workers.Pool[Mailbox]
	handings handings

	mu    sync.Mutex
	rules [len(operations)]weak.Pointer[Rules] // under mu: the last made, by Queue.plain; see sharedRules
}

// Stop ends the workers, when the owners of all mailboxes are gone. A second call does nothing.
func (c *Crew) Stop() { c.workers.Stop() }

// handings are where the posters of an adapter sleep until the provider has their receives.
//
// No wake-up is lost: a poster counts itself in n and then looks whether its receive was handed over. A step hands over, or
// ends the connection, and then looks at n (handOn, SetState). So one of the two sees the other. A holder on the short
// way looks at n rarely; but the poster has kicked before it waits, so that holder can't let the token go, and steps.
type handings struct {
	n    atomic.Int32 // posters that sleep, or are about to
	mu   sync.Mutex
	more sync.Cond // receives were handed over, or a connection has ended
}

// changed wakes those that sleep, if any, so that each looks again.
func (h *handings) changed() {
	if h.n.Load() == 0 {
		return
	}
	h.mu.Lock()
	h.more.Broadcast()
	h.mu.Unlock()
}
