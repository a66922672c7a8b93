package stream

import (
	"cmp"
	"context"
	"errors"
	"net"

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
// Config.TCP has taken effect. The network is the adapter's, whatever the argument says. If ctx ends first, the error is
// its cause; a peer that is no stream's, or speaks another version, is [ErrProtocol].
// Errors of the connection unwrap to the [dat.Cause].
func (d *Dialer) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	c, err := d.dial(ctx, address)
	if err != nil {
		return nil, addressError("dial", d.IA, address, err)
	}
	return c, nil
}

func (d *Dialer) dial(ctx context.Context, address string) (net.Conn, error) {
	cfg := d.Config
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
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
	err = c.line.endpoint.CommonConnect(address, dat.ConnectConfig{Private: c.line.flow.hello()})
	if err == nil {
		err = c.line.established(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.free())
	}
	p, err := c.line.endpoint.Query(dat.EndpointFieldLocalAddr | dat.EndpointFieldLocalQual | dat.EndpointFieldRemoteAddr | dat.EndpointFieldRemoteQual)
	if err != nil { // it has ended already
		p = dat.EndpointParam{}
	}
	c.local, c.remote = newAddr(from.ia, p.LocalAddr, p.LocalQual), newAddr(from.ia, p.RemoteAddr, cmp.Or(p.RemoteQual, portOf(address)))
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
