package iwarp

import (
	"context"
	"net"

	"godat/hw"
	"godat/hw/internal/soft"
)

// connection is one life of a queue pair, from NewQP or Reset to the OpEnd of both
// queues: it sets the two directions up, and ends them. In between the sender and the
// receiver work, each on its own state; they share only the link.
type connection struct {
	link
	send sender

	heard heard // of an attempt that ran out of time; of the goroutine that makes it

	// Owned by the token's holder.
	saidDown        bool
	sqEnded         bool
	rqEnded         bool
	teardownStarted bool

	_ [soft.CacheLine]byte

	recv receiver
}

// batch is the most completions handed out at a time.
const batch = 32

func newConnection(q *queuePair) *connection {
	c := &connection{}
	c.qp, c.dev, c.facts = q, q.dev, q.Cfg.Facts
	c.owner = c
	c.Begin(&q.QP)
	c.attention.Store(idleRecv)
	mem := q.View()
	c.send.init(&c.link, mem, q.Cfg.SendDepth)
	c.recv.init(&c.link, mem, q.Cfg.RecvDepth)
	c.recv.port = &c.send.port
	return c
}

// adopt makes conn the connection that Break interrupts. It returns false if Break came
// first; the caller then closes conn.
func (c *connection) adopt(conn net.Conn, cancel context.CancelFunc) bool {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if c.Dead {
		return false
	}
	c.conn, c.cancel = conn, cancel
	return true
}

// breakOff does what Break does. A second call has no effect.
func (c *connection) breakOff(orderly bool) {
	c.Mu.Lock()
	again := c.attention.Or(closed)&closed != 0
	kindred := c.begun && c.agreed.extended
	c.Mu.Unlock()
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
	c.kick(byPoster)
}
