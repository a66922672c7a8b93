package iwarp

import (
	"context"
	"net"
	"sync/atomic"

	"godat/hw"
	"godat/hw/internal/soft"
)

// connection is what a queue pair is from NewQP or Reset to the OpEnd of both
// queues: it sets the two directions up, and ends them. In between the sender and
// the receiver work, each on its own state; all that they share is the link.
type connection struct {
	link
	send sender

	// The token holder's.
	saidDown        bool
	sqEnded         bool
	rqEnded         bool
	teardownStarted bool

	ends atomic.Int32 // queues that have ended

	_ [soft.CacheLine]byte

	recv receiver
}

// batch is how many completions are handed out at a time.
const batch = 32

func newConnection(q *queuePair) *connection {
	c := &connection{}
	c.qp, c.dev, c.facts = q, q.dev, q.cfg.Facts
	c.token.owner = c
	mem := access{q.View(&q.dev.Device)}
	c.send.init(&c.link, mem, q.cfg.SendDepth)
	c.recv.init(&c.link, mem, q.cfg.RecvDepth)
	c.attention.Store(idleRecv)
	return c
}

// attempt starts an attempt to connect; a connection has one.
func (c *connection) attempt(op string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != unconnected || c.dead {
		return hw.Errorf(op, hw.InvalidState, c.state(), "the queue pair is not new or reset")
	}
	c.phase = connecting
	return nil
}

// adopt makes conn the one that Break interrupts; false means that Break came
// first, and conn is the caller's to close.
func (c *connection) adopt(conn net.Conn, cancel context.CancelFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return false
	}
	c.conn, c.cancel = conn, cancel
	return true
}

// breakOff is Break.
func (c *connection) breakOff(orderly bool) {
	c.mu.Lock()
	again := c.attention.Or(closed)&closed != 0
	kindred := c.begun && c.agreed.extended
	c.mu.Unlock()
	if again {
		return
	}
	var term []byte
	switch {
	case !orderly:
		term = localTerminate()
	case kindred:
		term = farewell()
	}
	c.die(ending{why: hw.ReasonNone, term: term})
	c.kick(posterBudget)
}

// ended reports whether both queues have ended.
func (c *connection) ended() bool { return c.ends.Load() == 2 }

// unused reports whether no attempt to connect has begun.
func (c *connection) unused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.phase == unconnected && !c.dead
}

// step does what there is to do for the token's holder.
func (c *connection) step(budget int) {
	if !c.send.step(budget) {
		c.flush()
	}
}
