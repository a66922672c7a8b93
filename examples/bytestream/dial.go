package bytestream

import (
	"context"
	"errors"
	"net"
	"strconv"

	"godat/ep"
	"godat/evd"
	dat "godat/runtime"
)

// Dial connects to a [Listener] at "host:port".
func Dial(ctx context.Context, ia *dat.IA, address string) (*Conn, error) {
	c, err := newConn(ia)
	if err != nil {
		return nil, err
	}
	if err = c.endpoint.CommonConnect(address, ep.ConnectConfig{}); err == nil {
		err = c.established(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Conn) established(ctx context.Context) error {
	select {
	case <-c.up:
		return nil
	case <-c.down:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.over
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Listener accepts streams.
type Listener struct {
	ia       *dat.IA
	requests *evd.Dispatcher
	psp      *ep.PSP
}

// Listen listens at that port of the adapter; 0 is one that the provider chooses.
func Listen(ia *dat.IA, port uint64) (*Listener, error) {
	l := &Listener{ia: ia}
	var err error
	if l.requests, err = ia.NewDispatcher(evd.Config{Mode: evd.ModeChannel, QLen: 1}); err != nil {
		return nil, err
	}
	if l.psp, err = ia.NewPSP(ep.PSPConfig{Qual: port, Dispatcher: l.requests}); err != nil {
		return nil, errors.Join(err, l.requests.Close())
	}
	return l, nil
}

// Addr is where a peer on the same machine dials.
func (l *Listener) Addr() string {
	return net.JoinHostPort(l.ia.Attr().Address, strconv.FormatUint(l.psp.Qual(), 10))
}

// Accept returns the next stream. It may be on its way up still: Read and Write wait for that, and Accept does not, because
// the peer may take its time.
func (l *Listener) Accept() (*Conn, error) {
	for ev := range l.requests.C() {
		cr := ep.RequestOf(ev)
		if cr == nil {
			continue
		}
		c, err := newConn(l.ia)
		if err != nil {
			return nil, errors.Join(err, cr.Reject(nil))
		}
		if cr.Accept(c.endpoint, nil) == nil {
			return c, nil
		}
		_ = c.Close() // the peer has gone meanwhile
	}
	return nil, net.ErrClosed
}

// Close ends Accept, and refuses those that wait for it. Streams go on.
func (l *Listener) Close() error { return errors.Join(l.psp.Close(), l.requests.Close()) }
