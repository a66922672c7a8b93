package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"godat/ep"
	"godat/hw"
	"godat/hw/event"
)

// Dial connects to address, "host:port", and returns when the connection is up. The
// receives are posted before. The connection has a channel of events of its own. If ctx
// ends first, the error matches its cause, and [hw.ErrTimeout] too if its deadline has passed; it
// says what the attempt had come to, as far as the provider tells. ConnConfig.Timeout bounds the
// call, too. If the peer
// refuses, the error is that of the event (see [event.Event.Err]), and [hw.Cause].Private of
// it has the private data of the peer's program, such as ConnConfig.Refusal of a listener
// that is full. Over iwarp, a peer that hangs up or resets may have too many start-ups at a
// time: see the parameter halfopenip in [godat/hw/iwarp.Config]. An adapter that is closed
// before or while Dial waits is INVALID_HANDLE/IA, which matches [net.ErrClosed]; a connection that is closed, shut down or
// disconnected before it is up, by a goroutine that has it from Setup, is INVALID_HANDLE/EP;
// a zone that is closed or another adapter's is INVALID_HANDLE/PZ; a nil ctx is
// INVALID_PARAMETER.
func (ia *IA) Dial(ctx context.Context, address string, cfg ConnConfig) (*Conn, error) {
	const op = "runtime.Dial"
	if err := cfg.prepare(ctx, op, ia); err != nil {
		return nil, err
	}
	if err := ia.refuseInHook(op); err != nil {
		return nil, err
	}
	c := newConn(ia, &cfg, nil, newDial(ia, address), nil)
	err := c.begin(op, cfg.Private, func(private []byte) error {
		err := c.Endpoint.CommonConnect(address, ep.ConnectConfig{Private: private, Timeout: attemptTime(ctx, cfg.Timeout)})
		if err == nil {
			err = whoListens(c.established(ctx), private)
		}
		c.findAddrs() // for a program that asks behind the end
		return named(op, address, err)
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// newDial is what String returns of a new connection to address.
func newDial(ia *IA, address string) string {
	return fmt.Sprintf("%s (dial %d)", address, ia.dials.Add(1))
}

// named says in an error which call failed, and for which address. The name takes the
// place of that of a call that op made. It is nil for nil.
func named(op, address string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*hw.Error); ok {
		own := *e
		own.Op = op + " " + address
		return &own
	}
	return fmt.Errorf("%s %s: %w", op, address, err)
}

// prepare checks the arguments of a call on ia before anything is made, and completes cfg.
func (cfg *ConnConfig) prepare(ctx context.Context, op string, ia *IA) error {
	if err := ia.enter(op); err != nil {
		return err
	}
	ia.gate.RUnlock()
	if ctx == nil {
		return nilContext(op)
	}
	switch {
	case cfg.PZ == nil:
	case !ia.domain.Has(cfg.PZ):
		return hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "ConnConfig.PZ is another adapter's: NewPZ of this one makes zones for it")
	case !isOpen(cfg.PZ):
		return hw.Errorf(op, hw.InvalidHandle, hw.HandlePZ, "ConnConfig.PZ is closed; NewPZ makes another")
	}
	return cfg.complete(op, ia.attr)
}

// speakers are what the packages above begin their private data with, and who says so.
var speakers = map[string]string{
	"DATC": "a server of package rpc listens there: rpc.Dial makes connections to it",
	"DATS": "a listener of package stream listens there: stream.Dialer makes connections to it",
}

// whoListens says in the error of a Dial that was rejected who listens at the address, if the
// private data of the reject tells, and the Dial did not speak that protocol itself.
func whoListens(err error, told []byte) error {
	var cause *hw.Cause
	if !errors.As(err, &cause) {
		return err
	}
	for magic, who := range speakers {
		if bytes.HasPrefix(cause.Private, []byte(magic)) && !bytes.HasPrefix(told, []byte(magic)) {
			return fmt.Errorf("%w (%s)", err, who)
		}
	}
	return err
}

// attemptTime is how long an attempt may take: until the context's deadline, if that comes first. So the
// provider tells what the attempt had come to.
func attemptTime(ctx context.Context, limit time.Duration) time.Duration {
	if at, ok := ctx.Deadline(); ok {
		if left := max(time.Until(at), time.Millisecond); limit == 0 || left < limit {
			return left
		}
	}
	return limit
}

// established waits until the connection is up.
func (c *Conn) established(ctx context.Context) error {
	select {
	case <-c.up:
		return nil
	case <-ctx.Done():
		return outOfTime(ctx, c.lastWord(ctx))
	case <-c.ended:
	}
	if isDone(c.up) { // before it ended
		return nil
	}
	for ev := range c.events.Events(ctx) {
		if ev.Number == event.Closed || ev.Ended() && !c.closed.Load() {
			if at, ok := ctx.Deadline(); ok && ev.Number == event.TimedOut && !time.Now().Before(at) {
				<-ctx.Done() // whose deadline was the attempt's, and has passed
				return outOfTime(ctx, ev.Err())
			}
			return neverUp(ev)
		}
		// Other events are of operations that Setup posted and that were flushed.
	}
	return outOfTime(ctx, c.lastWord(ctx))
}

// lastWordTime is how long a Dial that is over waits for the provider to say what the attempt had
// come to.
const lastWordTime = time.Second

// lastWord is what the provider says of an attempt whose time is over with the context's deadline,
// or nil.
func (c *Conn) lastWord(ctx context.Context) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) || c.up == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWordTime)
	defer cancel()
	select {
	case <-c.ended:
	case <-c.up: // too late
		return nil
	case <-ctx.Done():
		return nil
	}
	for ev := range c.events.Events(ctx) {
		if ev.Number == event.Closed || ev.Ended() {
			return ev.Err()
		}
	}
	return nil
}

// outOfTime is the error of a Dial whose context has ended before the connection was up. last is
// the provider's word on the attempt, if there is one.
func outOfTime(ctx context.Context, last error) error {
	cause, kind := context.Cause(ctx), hw.InterruptedCall
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		kind = hw.TimeoutExpired
	}
	if last == nil {
		return hw.Errorf("runtime.Dial", kind, hw.NoSubtype, "%w, and the peer had not answered", cause)
	}
	return &hw.Error{Op: "runtime.Dial", Type: kind, Text: fmt.Sprintf("%v: %v", cause, last), Err: errors.Join(cause, last)}
}

// neverUp is the error of a connection that ended with ev before it was up. An orderly
// end is an error, too: the peer hung up in place of an answer, or this side gave up.
func neverUp(ev event.Event) error {
	if err := ev.Err(); err != nil && ev.Number != event.Closed {
		return err
	}
	if cause := ev.Cause(); cause != nil && cause.Found == hw.SidePeer {
		return fmt.Errorf("%w before the connection was up: %w", event.Error(event.Disconnected), cause)
	}
	return hw.Errorf("runtime.Dial", hw.InvalidHandle, hw.HandleEP, "this side ended the connection before it was up: %w", net.ErrClosed)
}
