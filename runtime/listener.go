package runtime

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"

	"godat/ep"
	"godat/evd"
	"godat/hw"
)

// Listener takes connections: requests for them come on one channel, and the events
// of all that it accepted on another, for a server to select on. Its methods may be
// called from any goroutine.
type Listener struct {
	// Immutable.
	ia       *IA
	cfg      ConnConfig
	psp      *ep.PSP
	requests *evd.Dispatcher
	events   *evd.Dispatcher // nil if each connection has its own

	closing sync.Mutex // held by Close from beginning to end

	mu     sync.Mutex
	conns  map[*Conn]struct{} // that it accepted or dialed, or is about to
	making sync.WaitGroup     // calls of Accept and Dial; none begins once closed is set
	closed bool
}

// Listen listens on address, "host:port": an empty host is all of the adapter's
// addresses, port 0 or none at all lets the provider choose. ctx bounds the call, not
// the listener's life: it is looked at before the device is asked. A closed adapter is
// INVALID_HANDLE/IA, a zone that is closed or another adapter's INVALID_HANDLE/PZ, a nil
// ctx INVALID_PARAMETER.
func (ia *IA) Listen(ctx context.Context, address string, cfg ConnConfig) (*Listener, error) {
	const op = "runtime.Listen"
	if err := ia.mayDial(ctx, op, &cfg); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	host, qual, err := splitListen(op, address)
	if err != nil {
		return nil, err
	}
	l := &Listener{ia: ia, cfg: cfg, conns: make(map[*Conn]struct{})}
	if err := l.make(host, qual); err != nil {
		return nil, ia.orClosed(op, errors.Join(err, l.Close()))
	}
	return l, nil
}

// make makes the parts of a listener.
func (l *Listener) make(host string, qual uint64) (err error) {
	if l.requests, err = l.ia.NewDispatcher(evd.Config{Mode: evd.ModeChannel, QLen: 1}); err != nil {
		return err
	}
	if !l.cfg.Apart {
		if l.events, err = l.ia.newConnEvents(&l.cfg, l.cfg.Conns); err != nil {
			return err
		}
	}
	backlog := max(l.cfg.Conns, defaultConns) // all peers may ask at once
	l.psp, err = l.ia.NewPSP(ep.PSPConfig{Addr: host, Qual: qual, Dispatcher: l.requests, Backlog: backlog})
	return err
}

// splitListen splits "host:port", of which both may be missing.
func splitListen(op, address string) (host string, qual uint64, err error) {
	if address == "" {
		return "", 0, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err == nil && port != "" {
		qual, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return "", 0, hw.Errorf(op, hw.InvalidAddress, hw.AddressMalformed, "%q: %w", address, err)
	}
	return host, qual, nil
}

// Addr is where to dial it: "host:port", with the adapter's own address if it listens
// on all of them; empty for a nil listener.
func (l *Listener) Addr() string {
	if l == nil {
		return ""
	}
	host, _, err := net.SplitHostPort(l.psp.Addr().String())
	if ip := net.ParseIP(host); err != nil || host == "" || ip != nil && ip.IsUnspecified() {
		host = l.ia.attr.Address
	}
	return net.JoinHostPort(host, strconv.FormatUint(l.psp.Qual(), 10))
}

// Requests is the channel on which connection requests come: [RequestOf] gives them
// to Accept. It is closed when the listener is.
func (l *Listener) Requests() <-chan Event {
	if l == nil {
		return nil
	}
	return l.requests.C()
}

// Events is the channel on which the events of all its connections come; see
// [Conn.Events] and [ConnOf]. It is closed when the listener is; nil with
// ConnConfig.Apart.
func (l *Listener) Events() <-chan Event {
	if l == nil {
		return nil
	}
	return l.events.C()
}

// String names the listener, by its address. It may be called at any time, as the
// String of every handle.
func (l *Listener) String() string {
	if l == nil {
		return "Listener(nil)"
	}
	return "Listener(" + l.Addr() + ")"
}

// Accept accepts a request. The receives are posted before the peer hears of it,
// which sees private, or what ConnConfig.Setup says in its place, with its end of the
// connection. It returns at once: ESTABLISHED
// is the first event of the connection, or an end is. With an error the peer is
// rejected with ConnConfig.Refusal, unless the request is answered already; with ConnConfig.Conns connections
// the error is INSUFFICIENT_RESOURCES, on a closed listener INVALID_HANDLE/PSP.
func (l *Listener) Accept(cr *CR, private []byte) (*Conn, error) {
	const op = "runtime.Listener.Accept"
	asked, err := cr.Query()
	if err != nil {
		return nil, err
	}
	c, err := l.newConn(op, asked.Remote.String(), asked.Private, private, func(c *Conn, private []byte) error {
		return cr.Accept(c.Endpoint, private)
	})
	if err != nil {
		if e := cr.Reject(l.refusal()); e != nil && !errors.Is(e, hw.ErrInvalidHandle) {
			err = errors.Join(err, e)
		}
		return nil, err
	}
	return c, nil
}

// refusal is what a peer is shown that is rejected.
func (l *Listener) refusal() []byte {
	if l == nil {
		return nil
	}
	return l.cfg.Refusal
}

// Dial connects to address, "host:port", with the settings of the listener, so that
// a server which is also a client has the events of all its connections in one
// channel. It returns at once: ESTABLISHED is the first event of the connection, or an
// end is. It counts among ConnConfig.Conns. On a closed listener it is
// INVALID_HANDLE/PSP.
func (l *Listener) Dial(address string, private []byte) (*Conn, error) {
	const op = "runtime.Listener.Dial"
	return l.newConn(op, address, nil, private, func(c *Conn, private []byte) error {
		return c.Endpoint.CommonConnect(address, ep.ConnectConfig{Private: private})
	})
}

// newConn makes one more connection, with a peer that said heard and is to be told
// told. Close waits for it.
func (l *Listener) newConn(op, peer string, heard, told []byte, connect func(c *Conn, told []byte) error) (*Conn, error) {
	if l == nil {
		return nil, closedListener(op)
	}
	c := l.ia.newConn(&l.cfg, l, peer, heard)
	if err := l.remember(op, c); err != nil {
		return nil, err
	}
	defer l.making.Done()
	if err := c.begin(op, told, func(told []byte) error { return connect(c, told) }); err != nil {
		return nil, err
	}
	return c, nil
}

// remember enters a connection, if there may be one more, which is being made until
// making is done.
func (l *Listener) remember(op string, c *Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return closedListener(op)
	case len(l.conns) >= l.cfg.Conns:
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceTEP, "there are %d connections, as many as ConnConfig.Conns allows", len(l.conns))
	}
	l.conns[c] = struct{}{}
	l.making.Add(1)
	return nil
}

func (l *Listener) forget(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// Shutdown ends the listener in order: it takes no more requests and rejects those
// that nobody accepted, ends all connections as [Conn.Shutdown] does, and gives
// everything back. Connections that have not ended when ctx does are broken off, and
// the error is ctx's. A nil ctx is INVALID_PARAMETER, a nil listener INVALID_HANDLE/PSP.
func (l *Listener) Shutdown(ctx context.Context) error {
	const op = "runtime.Listener.Shutdown"
	if l == nil {
		return closedListener(op)
	}
	if ctx == nil {
		return nilContext(op)
	}
	errs := []error{l.refuse()}
	conns := l.list()
	drained := make(chan error, len(conns))
	for _, c := range conns {
		go c.drainTo(ctx, drained)
	}
	for range conns {
		errs = append(errs, <-drained)
	}
	return errors.Join(append(errs, l.Close())...)
}

// drainTo is drain, for many connections at a time.
func (c *Conn) drainTo(ctx context.Context, done chan<- error) { done <- c.drain(ctx) }

// Close ends the listener, closes all its connections, and gives everything
// back. It waits for calls of Accept and Dial that are under way; those that follow are
// INVALID_HANDLE/PSP. Closing it again waits for the first call and does nothing, or
// tries once more what failed.
func (l *Listener) Close() error {
	if l == nil {
		return closedListener("runtime.Listener.Close")
	}
	l.closing.Lock()
	defer l.closing.Unlock()
	errs := []error{l.refuse()}
	for _, c := range l.list() {
		errs = append(errs, c.Close())
	}
	for _, d := range []*evd.Dispatcher{l.requests, l.events} {
		if d != nil {
			errs = append(errs, d.Close())
		}
	}
	return errors.Join(errs...)
}

// refuse stops listening and rejects the requests at hand. When it returns, no
// connection is being made any more.
func (l *Listener) refuse() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.making.Wait()
	if l.psp == nil {
		return nil
	}
	errs := []error{l.psp.Close()}
	for {
		select {
		case ev, ok := <-l.requests.C():
			if !ok {
				return errors.Join(errs...)
			}
			if err := RequestOf(ev).Reject(l.refusal()); !errors.Is(err, hw.ErrInvalidHandle) {
				errs = append(errs, err)
			}
		default:
			return errors.Join(errs...)
		}
	}
}

// list is the connections there are now.
func (l *Listener) list() []*Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	conns := make([]*Conn, 0, len(l.conns))
	for c := range l.conns {
		conns = append(conns, c)
	}
	return conns
}
