package line

import (
	"sync"
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

// Start lets mailboxes be made.
func (c *Crew) Start() {
	c.handings.more.L = &c.handings.mu
	c.workers.Start(serveLeft, func(b *Mailbox) **Mailbox { return &b.nextInList })
}

// Stop ends the workers, when the owners of all mailboxes are gone. A second call does nothing.
func (c *Crew) Stop() { c.workers.Stop() }
