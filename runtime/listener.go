package runtime

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
	"godat/internal/door"
)

// Listener accepts connections. The requests come on one channel, and the events of all
// its connections on another, so that a server selects on two. Its methods may be
// called from any goroutine.
//
//	select {
//	case ev := <-ln.Requests(): // a peer wants to connect
//		_, err := ln.Accept(ep.RequestOf(ev), nil) // log err, and go on
//	case ev := <-ln.Events():
//		switch c := dat.ConnOf(ev); {
//		case ev.Number == event.Closed: // the last event: the listener has been closed
//			return
//		case ev.Ended(): // the last event of c; ev.Err() says why, nil if in order
//			err := c.Close() // gives its memory back
//		case ev.Number == event.Established: // c is up
//		case ev.Op == hw.OpRecv: // a message: send or release its buffer
//			err := c.Send(c.Message(ev)) // fails if c is closed: log err, and go on
//		default: // a completion of an operation on c.Endpoint
//		}
//	}
//
// When the listener or its adapter has been closed, each of the two channels brings the
// event [event.Closed] behind all others, and stays open. A client of many connections that wants
// one channel for them uses a Listener too, and [Listener.Dial]; if it listens on
// "127.0.0.1", no other host can connect.
type Listener struct {
	// Immutable.
	ia       *IA
	cfg      ConnConfig
	psp      atomic.Pointer[ep.PSP] // nil until it listens: a snapshot may ask for its name before
	requests *evd.Dispatcher
	events   *evd.Dispatcher // nil if each connection has its own

	closing sync.Mutex // held by Close from beginning to end
	setups  callers

	mu     sync.Mutex
	conns  map[*Conn]bool // those that are not closed; true: it has its place
	taken  int            // places of ConnConfig.Conns that are taken
	noRoom uint64         // how often a connection found none
	making int            // calls of Accept and Dial under way; none begins once closed is set
	made   chan struct{}  // closed when making is 0; nil: nobody waits
	closed bool
}

// Listen listens on address, "host:port". Without a host it listens on all of the
// adapter's addresses. Over iwarp these are those of all the system's interfaces, unless
// the adapter was opened by an address ("iwarp:127.0.0.1"): any host that reaches one of
// them may connect. With port 0, or without one ("127.0.0.1", "::1", ""), the provider
// chooses the port. ctx bounds the call, not the listener's life; Listen only checks it before it asks the
// device. A closed adapter is INVALID_HANDLE/IA, a zone that is closed or another
// adapter's INVALID_HANDLE/PZ, a nil ctx INVALID_PARAMETER.
func (ia *IA) Listen(ctx context.Context, address string, cfg ConnConfig) (*Listener, error) {
	const op = "runtime.Listen"
	if err := cfg.prepare(ctx, op, ia); err != nil {
		return nil, err
	}
	if err := cfg.completeConns(op); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	host, qual, err := splitListen(op, address)
	if err != nil {
		return nil, err
	}
	l := &Listener{ia: ia, cfg: cfg, conns: make(map[*Conn]bool)}
	if err := l.make(host, qual); err != nil {
		return nil, ia.gate.orClosed(op, errors.Join(named(op, address, err), l.Close()))
	}
	ia.lists.mu.Lock()
	defer ia.lists.mu.Unlock()
	ia.lists.listeners.add(l)
	return l, nil
}

func (l *Listener) make(host string, qual uint64) (err error) {
	l.requests, err = l.ia.newDispatcher(evd.Config{Mode: evd.ModeChannel, QLen: 1}, func(d *delivery.Dispatcher) {
		d.EndWith(event.Event{Number: event.Closed, Source: l})
	})
	if err != nil {
		return err
	}
	if !l.cfg.Apart {
		if l.events, err = l.cfg.newEvents(l.ia, l.cfg.Conns, l); err != nil {
			return err
		}
	}
	backlog := max(l.cfg.Conns, defaultConns) // all peers may ask at the same time
	psp, err := l.ia.NewPSP(ep.PSPConfig{
		Addr: host, Qual: qual, Dispatcher: l.requests, Backlog: backlog, Refusal: l.cfg.Refusal,
	})
	if err != nil {
		return err
	}
	l.psp.Store(psp)
	psp.SetName(door.Key{}, l.String())
	return nil
}

// isMade reports whether Listen has made the listener.
func (l *Listener) isMade() bool { return l != nil && l.ia != nil }

// splitListen splits "host:port", either of which may be missing.
func splitListen(op, address string) (host string, qual uint64, err error) {
	if address == "" {
		return "", 0, nil
	}
	if _, err := strconv.ParseUint(address, 10, 64); err == nil {
		return "", 0, hw.Errorf(op, hw.InvalidAddress, hw.AddressMalformed, "%q is no \"host:port\"; \":%s\" is the port alone", address, address)
	}
	host = address
	if last := len(address) - 1; last > 0 && address[0] == '[' && address[last] == ']' {
		host = address[1:last]
	}
	if !strings.ContainsAny(host, ":[]") || net.ParseIP(host) != nil {
		return host, 0, nil
	}
	host, port, err := net.SplitHostPort(address)
	if err == nil && port != "" {
		qual, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return "", 0, hw.Errorf(op, hw.InvalidAddress, hw.AddressMalformed, "%q is no \"host:port\": %w", address, err)
	}
	return host, qual, nil
}

// Addr is the address to dial, "host:port". Its host is the adapter's own address if
// the listener listens on all addresses. It is empty for a nil listener.
func (l *Listener) Addr() string {
	if !l.isMade() {
		return ""
	}
	psp := l.psp.Load()
	if psp == nil {
		return ""
	}
	host, _, err := net.SplitHostPort(psp.Addr().String())
	if ip := net.ParseIP(host); err != nil || host == "" || ip != nil && ip.IsUnspecified() {
		host = l.ia.attr.Address
	}
	return net.JoinHostPort(host, strconv.FormatUint(psp.Qual(), 10))
}

// Requests is the channel on which connection requests come: [ep.RequestOf] takes a
// request from its event, for Accept. Its last event is [event.Closed], when the listener or the
// adapter has been closed: no request comes any more, and Accept of it fails with the error
// of a closed listener. The channel stays open, and is nil for a nil listener.
func (l *Listener) Requests() <-chan event.Event {
	if !l.isMade() {
		return nil
	}
	return l.requests.C()
}

// Events is the channel on which the events of all the listener's connections come; see
// [Conn.Events] and [ConnOf]. Its last event, behind the ends of all connections, is
// [event.Closed], when the listener or the adapter has been closed. The channel stays open, and
// is nil with ConnConfig.Apart.
func (l *Listener) Events() <-chan event.Event {
	if !l.isMade() {
		return nil
	}
	return l.events.C()
}

// Batches is Events with ConnConfig.Batches: see [Conn.Batches]. It is nil otherwise, and
// with ConnConfig.Apart.
func (l *Listener) Batches() <-chan *evd.Batch {
	if !l.isMade() {
		return nil
	}
	return l.events.Batches()
}

// String names the listener by its address. It may be called at any time, like the
// String of every handle.
func (l *Listener) String() string {
	if !l.isMade() {
		return "Listener(nil)"
	}
	return "Listener(" + l.Addr() + ")"
}

// LogValue names the listener's address, and says how many of its places are taken, for
// log/slog. It may be called at any time, like the LogValue of every handle.
func (l *Listener) LogValue() slog.Value {
	if !l.isMade() {
		return slog.StringValue(l.String())
	}
	conns, taken, _ := l.places()
	return slog.GroupValue(slog.String("address", l.Addr()), slog.Int("connections", taken), slog.Int("of", conns))
}

// Accept accepts a request. It posts the receives before the peer hears of the accept.
// With its end of the connection the peer gets private, or what ConnConfig.Setup
// returns in its place. Accept returns at once: the first event of the connection is
// ESTABLISHED, or its end. On an error it rejects the request with ConnConfig.Refusal,
// unless the request was answered already. With ConnConfig.Conns connections the error
// is INSUFFICIENT_RESOURCES. On a closed listener it is INVALID_HANDLE/PSP, which matches
// [net.ErrClosed], also for a nil request, as [ep.RequestOf] returns of Closed.
func (l *Listener) Accept(cr *ep.CR, private []byte) (*Conn, error) {
	return l.accept("runtime.Listener.Accept", cr, nil, private)
}

// AcceptWith is Accept of a connection with settings of its own, which a server makes of
// the peer's private data: a Depth that the peer asks for, or a Setup that knows what the
// request was. The peer gets cfg.Private. Conns, Refusal, Apart, Batches and OwnReceives
// are the listener's, whatever cfg has. A connection that needs more places for events
// than the listener's settings give it is INVALID_PARAMETER, unless it has a channel of
// its own.
func (l *Listener) AcceptWith(cr *ep.CR, cfg ConnConfig) (*Conn, error) {
	return l.accept("runtime.Listener.AcceptWith", cr, &cfg, cfg.Private)
}

// accept accepts a request with settings; nil are the listener's.
func (l *Listener) accept(op string, cr *ep.CR, cfg *ConnConfig, private []byte) (c *Conn, err error) {
	asked, err := cr.Query()
	if err != nil {
		if l.isClosed() {
			err = closedListener(op)
		}
		return nil, err
	}
	accepted := false // nor when Setup panics
	defer func() {
		if accepted {
			return
		}
		if e := cr.Reject(l.refusal()); err != nil && e != nil && !errors.Is(e, hw.ErrInvalidHandle) {
			err = errors.Join(err, e)
		}
	}()
	if cfg != nil && l != nil {
		if err = l.adopt(op, cfg); err != nil {
			return nil, err
		}
	}
	c, err = l.newConn(op, cfg, asked.Remote.String(), asked.Private, private, func(c *Conn, private []byte) error {
		c.addrs.Store(&connAddrs{asked.Local, asked.Remote})
		return cr.Accept(c.Endpoint, private)
	})
	accepted = err == nil
	return c, err
}

// isClosed reports whether the listener, or its adapter, accepts nothing any more.
func (l *Listener) isClosed() bool {
	if !l.isMade() {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed || isDone(l.ia.gate.down)
}

// adopt completes the settings of one connection with the listener's.
func (l *Listener) adopt(op string, cfg *ConnConfig) error {
	cfg.Conns, cfg.Refusal = l.cfg.Conns, l.cfg.Refusal
	cfg.Apart, cfg.Batches, cfg.OwnReceives = l.cfg.Apart, l.cfg.Batches, l.cfg.OwnReceives
	err := cfg.prepare(context.Background(), op, l.ia)
	if need, most := cfg.places(), l.cfg.places(); err == nil && !cfg.Apart && need > most {
		err = hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "the connection needs %d places for events; those of the listener have %d", need, most)
	}
	return err
}

// refusal is the private data for a peer that the listener rejects.
func (l *Listener) refusal() []byte {
	if !l.isMade() {
		return nil
	}
	return l.cfg.Refusal
}

// Dial connects to address, "host:port", with the listener's settings, so that a server
// that is also a client has the events of all its connections in one channel. It
// returns at once: the first event of the connection is ESTABLISHED, or its end. The
// connection counts among ConnConfig.Conns, and ConnConfig.Timeout bounds the attempt:
// without an answer by then, the end is TIMED_OUT. On a closed listener the error is
// INVALID_HANDLE/PSP.
func (l *Listener) Dial(address string, private []byte) (*Conn, error) {
	const op = "runtime.Listener.Dial"
	if !l.isMade() {
		return nil, closedListener(op)
	}
	return l.newConn(op, nil, newDial(l.ia, address), nil, private, func(c *Conn, private []byte) error {
		return named(op, address, c.Endpoint.CommonConnect(address, ep.ConnectConfig{Private: private, Timeout: l.cfg.Timeout}))
	})
}

// newConn makes one more connection, with settings of its own unless they are nil. heard is
// the private data that came from the peer, told the private data for it. Close waits for
// newConn.
func (l *Listener) newConn(op string, cfg *ConnConfig, peer string, heard, told []byte, connect func(c *Conn, told []byte) error) (*Conn, error) {
	if !l.isMade() {
		return nil, closedListener(op)
	}
	if cfg == nil {
		cfg = &l.cfg
	}
	c := newConn(l.ia, cfg, l, peer, heard)
	if err := l.remember(op, c); err != nil {
		return nil, err
	}
	defer l.hasMade()
	if err := c.begin(op, told, func(told []byte) error { return connect(c, told) }); err != nil {
		return nil, err
	}
	return c, nil
}

// remember adds a connection unless there are as many as allowed. On success the caller
// calls hasMade when the connection is made or has failed.
func (l *Listener) remember(op string, c *Conn) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return closedListener(op)
	case l.taken >= l.cfg.Conns:
		l.noRoom++
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceTEP, "there are %d connections, as many as ConnConfig.Conns allows", l.taken)
	}
	l.conns[c] = true
	l.taken++
	l.making++
	return nil
}

// hasMade ends a call of Accept or Dial.
func (l *Listener) hasMade() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.making--; l.making == 0 && l.made != nil {
		close(l.made)
		l.made = nil
	}
}

// leave gives a connection's place back. The connection is still the listener's to
// close. A connection of IA.Dial has no listener.
func (l *Listener) leave(c *Conn) {
	if !l.isMade() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns[c] {
		l.conns[c] = false
		l.taken--
	}
}

func (l *Listener) forget(c *Conn) {
	l.leave(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}
