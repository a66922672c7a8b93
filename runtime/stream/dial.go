package stream

import (
	"cmp"
	"context"
	"errors"
	"net"

	dat "godat/runtime"
)

// Dialer makes connections from an adapter. Its DialContext is one for http.Transport, and
// for whatever else dials by such a function.
type Dialer struct {
	IA     *dat.IA
	Config Config
}

// Dial is DialContext without a bound in time.
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialContext connects to a [Listener] at address, "host:port", and returns a *Conn. The
// network is the adapter's, whatever the argument says. If ctx ends first, the error is
// its cause; a peer that is no stream's, or speaks another version, is [ErrProtocol].
// Errors of the connection unwrap to the [dat.Cause].
func (d *Dialer) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	c, err := d.dial(ctx, address)
	if err != nil {
		return nil, addressError("dial", d.IA, address, err)
	}
	return c, nil
}

func (d *Dialer) dial(ctx context.Context, address string) (*Conn, error) {
	cfg := d.Config
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	c, err := newConn(d.IA, &cfg)
	if err != nil {
		return nil, err
	}
	err = c.line.endpoint.CommonConnect(address, dat.ConnectConfig{Private: c.line.flow.hello()})
	if err == nil {
		err = c.line.established(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.line.free())
	}
	p, err := c.line.endpoint.Query(dat.EndpointFieldLocalAddr | dat.EndpointFieldLocalQual | dat.EndpointFieldRemoteAddr | dat.EndpointFieldRemoteQual)
	if err != nil { // it has ended already
		p = dat.EndpointParam{}
	}
	c.local, c.remote = newAddr(d.IA, p.LocalAddr, p.LocalQual), newAddr(d.IA, p.RemoteAddr, cmp.Or(p.RemoteQual, portOf(address)))
	if p.RemoteAddr == nil {
		c.remote.hostPort = address
	}
	return c, nil
}

func (c *line) established(ctx context.Context) error {
	select {
	case <-c.up:
	case <-c.down:
	case <-c.events.C(): // the adapter was closed
		c.stop(net.ErrClosed)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	over := c.ended.Load()
	if over == nil || c.flow.out.receives != 0 {
		return nil
	}
	if cause, ok := errors.AsType[*dat.Cause](over.err); ok && len(cause.Private) >= helloSize { // a reject says why
		if err := checkGreeting(cause.Private); err != nil {
			return err
		}
	}
	return over.err
}
