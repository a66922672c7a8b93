package iwarp

import (
	"context"
	"net"
	"strconv"
	"sync"
	"syscall"
)

// pipes is a network of connections without descriptor and buffer: net.Pipe. wrap, if
// set, wraps each end.
type pipes struct {
	wrap func(net.Conn) net.Conn

	mu    sync.Mutex
	last  int
	ports map[string]*pipeListener
}

// config is the Config of a provider on the network.
func (p *pipes) config() Config {
	return Config{Dial: p.dial, Listen: p.listen, Address: "here"}
}

type pipeListener struct {
	net  *pipes
	port string
	in   chan net.Conn
	quit chan struct{}
	once sync.Once
}

type pipeAddr string

func (pipeAddr) Network() string  { return "pipe" }
func (a pipeAddr) String() string { return "0.0.0.0:" + string(a) }

func (p *pipes) listen(addr string) (net.Listener, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ports == nil {
		p.ports = make(map[string]*pipeListener)
	}
	if port == "0" {
		p.last++
		port = strconv.Itoa(p.last)
	}
	if p.ports[port] != nil {
		return nil, syscall.EADDRINUSE
	}
	ln := &pipeListener{net: p, port: port, in: make(chan net.Conn), quit: make(chan struct{})}
	p.ports[port] = ln
	return ln, nil
}

func (p *pipes) dial(ctx context.Context, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	ln := p.ports[port]
	p.mu.Unlock()
	switch {
	case host != "here":
		return nil, syscall.EHOSTUNREACH
	case ln == nil:
		return nil, syscall.ECONNREFUSED
	}
	a, b := net.Pipe()
	if p.wrap != nil {
		a, b = p.wrap(a), p.wrap(b)
	}
	select {
	case ln.in <- b:
		return a, nil
	case <-ln.quit:
		err = syscall.ECONNREFUSED
	case <-ctx.Done():
		err = ctx.Err()
	}
	_ = a.Close()
	_ = b.Close()
	return nil, err
}

func (ln *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-ln.in:
		return c, nil
	case <-ln.quit:
		return nil, net.ErrClosed
	}
}

func (ln *pipeListener) Close() error {
	ln.once.Do(func() {
		close(ln.quit)
		ln.net.mu.Lock()
		delete(ln.net.ports, ln.port)
		ln.net.mu.Unlock()
	})
	return nil
}

func (ln *pipeListener) Addr() net.Addr { return pipeAddr(ln.port) }

// halved gives a connection a CloseWrite, which the peer does not notice.
func halved(c net.Conn) net.Conn { return halvedConn{c} }

type halvedConn struct{ net.Conn }

func (halvedConn) CloseWrite() error { return nil }
