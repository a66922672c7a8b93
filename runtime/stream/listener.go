package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	dat "godat/runtime"
)

// Listener is a net.Listener whose connections are streams. [Listen] makes one. Any
// goroutine may call its methods.
type Listener struct {
	at       use
	tcp      net.Listener // instead of the rest, if Config.TCP took effect
	cfg      Config
	addr     addr
	psp      *ep.PSP
	requests *evd.Dispatcher

	closing sync.Once
}

func (l *Listener) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: l.addr.network, Addr: l.addr, Err: timed(err)}
}

// String names the listener by its address. It may be called at any time, like the String of
// every handle.
func (l *Listener) String() string {
	if l == nil {
		return "Listener(nil)"
	}
	return "Listener(" + l.addr.hostPort + ")"
}

// LogValue is String, for log/slog.
func (l *Listener) LogValue() slog.Value { return slog.StringValue(l.String()) }

// Listen listens at address, "host:port". Without a host it listens on all of the
// adapter's addresses, and with port 0 the provider chooses the port; "" is both, as it is for
// net.Listen. A nil ia means a shared adapter; see Config.Adapter. ctx bounds the call, not the listener's life.
func Listen(ctx context.Context, ia *dat.IA, address string, cfg Config) (*Listener, error) {
	l, err := listen(ctx, ia, address, cfg)
	if err != nil {
		return nil, addressError(ctx, "listen", ia, address, err)
	}
	return l, nil
}

func listen(ctx context.Context, ia *dat.IA, address string, cfg Config) (*Listener, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	if err := mayBegin(ctx); err != nil {
		return nil, err
	}
	at, err := useOf(ctx, ia, &cfg)
	if err != nil {
		if err = cfg.wantsTCP(err); err != nil {
			return nil, err
		}
		return listenTCP(ctx, address)
	}
	l := &Listener{at: at, cfg: cfg}
	if err := l.start(address); err != nil {
		return nil, errors.Join(err, at.leave())
	}
	return l, nil
}

func listenTCP(ctx context.Context, address string) (*Listener, error) {
	tcp, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &Listener{tcp: tcp, addr: addr{tcp.Addr().Network(), tcp.Addr().String()}}, nil
}

// start makes what peers ask.
func (l *Listener) start(address string) error {
	if address == "" {
		address = ":0"
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	qual, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("the port %q: %w", port, hw.ErrInvalidAddress)
	}
	ia := l.at.ia
	if l.requests, err = ia.NewDispatcher(evd.Config{Mode: evd.ModeChannel, QLen: 1}); err != nil {
		return err
	}
	l.psp, err = ia.NewPSP(ep.PSPConfig{Addr: host, Qual: qual, Dispatcher: l.requests, Backlog: l.cfg.Backlog})
	if err != nil {
		return errors.Join(err, l.requests.Close())
	}
	at := newAddr(ia, l.psp.Addr(), l.psp.Qual())
	host, _, _ = net.SplitHostPort(at.hostPort)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = ia.Attr().Address
	}
	l.addr = addr{at.network, net.JoinHostPort(host, strconv.FormatUint(l.psp.Qual(), 10))}
	return nil
}

// Accept waits for a connection and returns it, a *Conn, unless Config.TCP has taken effect. It refuses peers that speak
// another protocol, and goes on. It rejects a peer for which there are no resources; the
// error is a temporary one then, after which the program may call Accept again. A
// connection that it returns may still be on its way up: its first Read or Write waits for
// that.
func (l *Listener) Accept() (net.Conn, error) {
	if !l.made() {
		return nil, notMade("accept", "Listener", "Listen makes one")
	}
	if l.tcp != nil {
		return l.tcp.Accept()
	}
	for {
		ev, ok := <-l.requests.C()
		if !ok {
			return nil, l.opError("accept", net.ErrClosed)
		}
		cr := ep.RequestOf(ev)
		if cr == nil {
			continue
		}
		c, err := l.accept(cr)
		switch {
		case err == nil:
			return c, nil
		case errors.Is(err, errPeer):
		case errors.Is(err, hw.ErrInvalidHandle): // the adapter or the request is closed
		default:
			return nil, l.opError("accept", shortage{err})
		}
	}
}

// shortage is an error of one Accept, after which later ones may succeed: http.Server
// waits a little then, and goes on.
type shortage struct{ error }

// Temporary reports true.
func (shortage) Temporary() bool { return true }

// Unwrap returns the error.
func (s shortage) Unwrap() error { return s.error }

// errPeer is matched by the error of a request whose peer is at fault: Accept goes on.
var errPeer = errors.New("stream: the peer's request can't be accepted")

// accept makes the connection that a peer asks for, or rejects it.
func (l *Listener) accept(cr *ep.CR) (*Conn, error) {
	asked, err := cr.Query()
	if err != nil {
		return nil, err
	}
	h, err := parseHello(asked.Private)
	if err != nil {
		return nil, errors.Join(errPeer, cr.Reject(hello{}.append(nil)))
	}
	at, err := l.at.again()
	if err != nil {
		return nil, errPeer // which asked in vain: the listener is closed
	}
	c, err := newConn(at, &l.cfg)
	if err != nil {
		return nil, errors.Join(err, cr.Reject(nil))
	}
	c.local = newAddr(at.ia, asked.Local, asked.Qual)
	c.remote = newAddr(at.ia, asked.Remote, asked.RemoteQual)
	c.line.flow.meet(h)
	if err := cr.Accept(c.line.endpoint, c.line.flow.hello()); err != nil {
		return nil, errors.Join(errPeer, err, c.free()) // the peer has gone meanwhile
	}
	return c, nil
}

// Close stops listening, refuses the peers that wait, and unblocks Accept. Connections that
// were accepted go on. A second Close returns nil; that of a nil listener matches ErrInvalidHandle.
func (l *Listener) Close() (err error) {
	if !l.made() {
		return notMade("close", "Listener", "Listen makes one")
	}
	l.closing.Do(func() {
		if l.tcp != nil {
			err = l.tcp.Close()
			return
		}
		if err = errors.Join(gone(l.psp.Close()), gone(l.requests.Close()), l.at.leave()); err != nil {
			err = l.opError("close", err)
		}
	})
	return err
}

// Addr is the address to dial. Its host is the adapter's own if the listener listens on
// all of the adapter's addresses.
func (l *Listener) Addr() net.Addr {
	if l == nil {
		return addr{}
	}
	return l.addr
}

// made reports whether the listener comes of Listen.
func (l *Listener) made() bool { return l != nil && (l.tcp != nil || l.psp != nil) }
