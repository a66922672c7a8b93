package runtime

import (
	"context"
	"errors"

	"godat/ep"
	"godat/hw/event"
)

// Shutdown ends the connection in order. It waits until the program has no buffer of the
// connection any more: each message that was taken is answered or released, by the
// goroutines that have it. Then it lets sends and posted work complete, Do included, for
// [ep.Attr].DrainTimeout at most, tells the peer, and gives everything back as Close does.
// The program need not receive events meanwhile; from the beginning of Shutdown, Message
// returns nil for a message that was not taken.
//
// The caller of Shutdown releases its own buffers first. A program that answers in another
// buffer takes that one before it releases the message, and one that queues flushes.
//
// If the peer has ended the connection already, or breaks it, Shutdown returns nil: the
// event of the end says why. If ctx ends first, Shutdown closes the connection abruptly;
// the error matches the cause of ctx, and says how many messages the program had, and how
// many were not sent. A peer that is gone but not known to be holds Shutdown up until then,
// or until the provider gives up (iwarp after its parameter linger, a second). A nil ctx is
// INVALID_PARAMETER, a nil connection INVALID_HANDLE/EP.
func (c *Conn) Shutdown(ctx context.Context) error {
	const op = "runtime.Conn.Shutdown"
	if !c.isMade() {
		return closedConn(op)
	}
	if ctx == nil {
		return nilContext(op)
	}
	if err := c.ia.refuseInHook(op); err != nil {
		return err
	}
	return errors.Join(drainAll(ctx, op, []*Conn{c}), c.Close())
}

// isMade reports whether Dial, Accept or Connect has made the connection.
func (c *Conn) isMade() bool { return c != nil && c.ia != nil }

// disconnect disconnects and waits for the event of the end.
func (c *Conn) disconnect(ctx context.Context, how ep.CloseFlags) error {
	if c.Endpoint.Disconnect(how) != nil {
		return nil // not connected
	}
	select {
	case <-c.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close gives back all that the connection has. It ends the regions that Alloc and Register
// made, and frees the windows of the endpoint, and those of a zone of the connection's own.
// It ends a connection that is still up, or an attempt at one, without waiting for
// posted work, nor for the program's handlers: buffers that the program still has stay its
// own until Send, Queue or Release, which still take them, and memory of Alloc stays the
// program's. With ConnConfig.Debug, the error names the calls that took the buffers which
// the program still has. While something else that the program made is in the connection's own zone, such as a
// region of [mem.PZ.Alloc], the error is INVALID_STATE/PZ_IN_USE. A second Close waits for the first and does nothing, or
// tries again what failed.
//
// Each connection that Accept or Dial returned has exactly one event of its end, also
// when this end closes it: then it is DISCONNECTED, and in the channel before Close
// returns. So are the completions that the close flushed, and the messages that came
// before; Message returns nil for them. In a shared channel the program meets these
// events later, and ConnOf still tells whose they are. In a channel of the connection's own
// [event.Closed] comes behind them. [IA.Close], which ends all connections, makes no event of
// each, only Closed.
func (c *Conn) Close() error {
	if !c.isMade() {
		return closedConn("runtime.Conn.Close")
	}
	if err := c.ia.refuseInHook("runtime.Conn.Close"); err != nil {
		return err
	}
	c.closing.Lock()
	defer c.closing.Unlock()
	c.refuses.Store(true)
	c.findAddrs()
	if !c.closed.Swap(true) {
		close(c.gone)
	}
	if c.Endpoint != nil {
		_ = c.disconnect(context.Background(), ep.Abrupt)
		if err := c.Endpoint.Close(); err != nil {
			return err // the endpoint still uses the rest
		}
	}
	c.end(event.Event{})
	if c.Endpoint != nil {
		if err := c.own.FreeWindows(c.pz, c.pz != c.cfg.PZ); err != nil {
			return err // what they are bound to can't end before them
		}
	}
	var kept error
	if c.pool != nil {
		// The pool complains once of buffers that the program kept, and is closed
		// nevertheless.
		if kept = c.pool.Close(); kept != nil && c.pool.Close() != nil {
			return kept
		}
	}
	errs := []error{c.memory.End()}
	if c.pz != nil && c.pz != c.cfg.PZ {
		errs = append(errs, c.pz.Close())
	}
	if c.polled != nil {
		errs = append(errs, c.polled.Close())
	}
	if ownEvents(c) && c.events != nil {
		errs = append(errs, c.events.Close())
	}
	err := errors.Join(errs...)
	if err == nil && c.listener != nil {
		c.listener.forget(c) // last: the listener's Close tries again what failed here
	}
	return errors.Join(kept, err)
}
