package stream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"godat/ep"
	"godat/hw"
	dat "godat/runtime"
)

// Dialer makes connections. Its DialContext is one for http.Transport, and for whatever else
// dials by such a function. The zero value is good.
type Dialer struct {
	IA     *dat.IA // nil: the connections share an adapter; see Config.Adapter
	Config Config
}

// Dial is DialContext without a bound in time.
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialContext connects to a [Listener] at address, "host:port", and returns a *Conn, unless
// Config.TCP has taken effect. The network is the adapter's, whatever the argument says. If ctx ends first, the error matches
// its cause, and says what the attempt had come to; if its deadline has passed, the error is a time-out (net.Error). A peer that
// is no stream's, or speaks another version, is [ErrProtocol]. Errors of the connection unwrap to the [hw.Cause].
func (d *Dialer) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	if d == nil {
		return nil, notMade("dial", "Dialer", "new(stream.Dialer) is a good one")
	}
	c, err := d.dial(ctx, address)
	if err != nil {
		return nil, addressError(ctx, "dial", d.IA, address, err)
	}
	return c, nil
}

func (d *Dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	cfg := d.Config
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if err := mayBegin(ctx); err != nil {
		return nil, err
	}
	from, err := useOf(ctx, d.IA, &cfg)
	if err != nil {
		if err = cfg.wantsTCP(err); err != nil {
			return nil, err
		}
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	c, err := newConn(from, &cfg)
	if err != nil {
		return nil, err
	}
	err = c.line.endpoint.CommonConnect(address, ep.ConnectConfig{Private: c.line.flow.hello(), Timeout: timeLeft(ctx)})
	if err == nil {
		err = c.line.established(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.free())
	}
	p, err := c.line.endpoint.Query()
	if err != nil { // it has ended already
		p = ep.Param{}
	}
	c.local, c.remote = newAddr(from.ia, p.LocalAddr, p.LocalQual), newAddr(from.ia, p.RemoteAddr, cmp.Or(p.RemoteQual, portOf(address)))
	if p.RemoteAddr == nil {
		c.remote.hostPort = address
	}
	return c, nil
}

// mayBegin says why a call with the context does not begin.
func mayBegin(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("stream: a nil context: %w", hw.ErrInvalidParameter)
	}
	return context.Cause(ctx)
}

// timeLeft is how long an attempt may take, so that the provider says what it had come to; 0 without
// a deadline.
func timeLeft(ctx context.Context) time.Duration {
	at, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(time.Until(at), time.Millisecond)
}

// wordTime is how long the provider may take for its word on an attempt whose time is over.
const wordTime = 200 * time.Millisecond

// outOfTime is the error of an attempt whose context has ended, with the provider's word on it if
// the context had a deadline, which was the provider's too.
func (c *line) outOfTime(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		late := time.NewTimer(wordTime)
		defer late.Stop()
		select {
		case <-c.down:
		case <-late.C:
		}
	}
	if over := c.ended.Load(); over != nil && over.err != nil {
		return fmt.Errorf("%w: %w", cause, over.err)
	}
	return fmt.Errorf("%w, and the peer had not answered", cause)
}

func (c *line) established(ctx context.Context) error {
	select {
	case <-c.up:
	case <-c.down:
	case <-c.gone: // the adapter was closed
		c.stop(net.ErrClosed)
	case <-ctx.Done():
		return c.outOfTime(ctx)
	}
	over := c.ended.Load()
	if over == nil || c.flow.out.receives != 0 {
		return nil
	}
	if at, ok := ctx.Deadline(); ok && errors.Is(over.err, hw.ErrTimeout) && !time.Now().Before(at) {
		<-ctx.Done() // whose deadline was the attempt's
		return c.outOfTime(ctx)
	}
	return refused(over.err)
}

// refused adds to the error of an attempt what the peer has said in its reject, which a device may have padded.
func refused(err error) error {
	cause, ok := errors.AsType[*hw.Cause](err)
	if !ok || len(bytes.Trim(cause.Private, "\x00")) == 0 {
		return err
	}
	if bytes.HasPrefix(cause.Private, []byte("DATC")) {
		return fmt.Errorf("%w: %w: a server of package rpc listens there: rpc.Dial makes connections to it", err, ErrProtocol)
	}
	if _, differs := agree(cause.Private); differs != nil {
		return fmt.Errorf("%w: %w", err, differs)
	}
	return err
}
