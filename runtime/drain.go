package runtime

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"godat/ep"
)

// This file has how Shutdown waits for the program.

// drainResult is how the drain of a connection ended.
type drainResult struct {
	conn         *Conn
	cut          bool // the context ended first
	held, unsent int  // messages that the program had then, and that were not sent
}

// drain lets the program send or release the buffers that it has, lets the sends complete,
// ends the connection in order, waits for the end, and sends the result to done. Message gives the program no more of
// them: a Message beside drain has its buffer when drain counts, or sees refuses. A Send
// beside drain is counted from before it posts, so drain does not disconnect in between.
func (c *Conn) drain(ctx context.Context, done chan<- drainResult) {
	c.closing.Lock() // a connection of a listener may still be being made
	c.refuses.Store(true)
	c.closing.Unlock()
	r := drainResult{conn: c}
	if r.wait(ctx); !r.cut {
		r.cut = c.disconnect(ctx, ep.Graceful) != nil
	}
	done <- r
}

// wait waits until the program has no buffer, and as long as a graceful disconnect waits
// until all is sent, or until the connection has ended. When ctx ends first, it notes how
// many are left.
func (r *drainResult) wait(ctx context.Context) {
	c := r.conn
	if c.pool == nil {
		return
	}
	var patience <-chan time.Time
	returns := c.buffers.Returns()
	for {
		held, unsent := c.buffers.InUse()
		switch {
		case held+unsent == 0:
			return
		case held == 0 && patience == nil:
			p, _ := c.Endpoint.Query()
			if p.Attr.DrainTimeout == 0 {
				p.Attr.DrainTimeout = math.MaxInt64
			}
			patience = time.After(p.Attr.DrainTimeout)
		}
		select {
		case <-returns:
		case <-patience:
			return // the disconnect breaks the connection
		case <-c.ended:
			return
		case <-ctx.Done():
			r.cut, r.held, r.unsent = true, held, unsent
			return
		}
	}
}

// drainAll drains connections at the same time. The error says whose drain ctx cut off.
func drainAll(ctx context.Context, op string, all []*Conn) error {
	done := make(chan drainResult, len(all))
	for _, c := range all {
		go c.drain(ctx, done)
	}
	var first *Conn
	conns, held, unsent := 0, 0, 0
	for range all {
		if d := <-done; d.cut {
			first = cmp.Or(first, d.conn)
			conns++
			held += d.held
			unsent += d.unsent
		}
	}
	if conns == 0 {
		return nil
	}
	return fmt.Errorf("%s: %d connections were cut off, %v the first, while the program had %d of their messages, and %d were not sent: %w",
		op, conns, first, held, unsent, context.Cause(ctx))
}
