package iwarp

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"godat/hw"
	"godat/hw/internal/soft"
	"godat/hw/iwarp/wire"
	"godat/internal/labels"
)

// listener takes connections and the requests that come on them.
type listener struct {
	// Immutable.
	dev       *device
	ln        net.Listener
	host      string // as it was given
	qual      uint64
	onRequest func(hw.Request) bool
	life      context.Context // ends with the listener
	quit      context.CancelFunc
	done      chan struct{}

	startups *startups
	greeting sync.WaitGroup // goroutines that run greet

	// Owned by the goroutine of serve, which Listen starts.
	spare   spare
	failing bool // the last accept failed, and was reported
}

// Listen listens at cfg.Addr, or at the device's address if that is empty. It offers
// each request as soon as it is complete, so cfg.Backlog does not bound requests. The
// parameters halfopen and halfopenip bound the connections whose request has not come,
// and follow from cfg.Backlog if they are not set: the oldest gives way to a new one, and
// cfg.OnDrop is called.
func (d *device) Listen(cfg hw.ListenConfig) (hw.Listener, error) {
	const op = "iwarp.Listen"
	switch {
	case cfg.OnRequest == nil || cfg.Backlog < 0:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "no OnRequest, or a negative backlog")
	case cfg.Qual > hw.MaxQual:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "connection qualifier %d is no TCP port", cfg.Qual)
	}
	if err := d.Use("Listen", soft.Listeners); err != nil {
		return nil, err
	}
	host := cfg.Addr
	if host == "" {
		host = d.host
	}
	ln, err := d.listen(net.JoinHostPort(host, strconv.FormatUint(cfg.Qual, 10)))
	if err != nil {
		d.Unuse(soft.Listeners)
		return nil, listenError(op, err)
	}
	l := &listener{
		dev: d, ln: ln, host: host, qual: cmp.Or(portOf(ln.Addr()), cfg.Qual), onRequest: cfg.OnRequest,
		done: make(chan struct{}), startups: newStartups(&d.set, &cfg),
	}
	l.life, l.quit = context.WithCancel(context.Background())
	_ = l.spare.take() // without one, peers wait as long as descriptors are scarce
	go l.serve()
	return l, nil
}

// listenError turns a system's error into a DAT error of Listen.
func listenError(op string, err error) error {
	switch {
	case errors.As(err, new(*hookError)):
		return hw.Errorf(op, hw.InternalError, hw.NoSubtype, "%w", err)
	case errors.Is(err, syscall.EADDRINUSE):
		return hw.Errorf(op, hw.ConnQualInUse, hw.NoSubtype, "%w: port 0 is any free one", err)
	case errors.Is(err, syscall.EACCES):
		return hw.Errorf(op, hw.ConnQualUnavailable, hw.NoSubtype, "%w", err)
	case isScarce(err):
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceDevice, "%w", err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return hw.Errorf(op, hw.InvalidAddress, hw.AddressUnsupported, "%w: the address is not one of this machine: without a host, as in \":7000\", a listener is at all that the adapter has", err)
	}
	return hw.Errorf(op, hw.InvalidAddress, hw.AddressUnsupported, "%w", err)
}

// portOf is the port in a, behind an address or a name; 0 if there is none.
func portOf(a net.Addr) uint64 {
	_, port := hostPort(a)
	n, _ := strconv.ParseUint(port, 10, 16)
	return n
}

// hostPort is the host and the port in a, both empty if a has no such form.
func hostPort(a net.Addr) (host, port string) {
	if a != nil {
		host, port, _ = net.SplitHostPort(a.String())
	}
	return host, port
}

// addrPort is the address and the port in a, if it is TCP's.
func addrPort(a net.Addr) (ap netip.AddrPort) {
	if a != nil {
		ap, _ = netip.ParseAddrPort(a.String())
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// Addr is the address at which the listener listens.
func (l *listener) Addr() net.Addr { return zoned(l.ln.Addr(), l.host) }

// zoned is a with the zone of host, an address: not every kernel tells the zone in which a
// socket listens, and without it nobody can dial a link-local address.
func zoned(a net.Addr, host string) net.Addr {
	at, ok := a.(*net.TCPAddr)
	given, err := netip.ParseAddr(host)
	if !ok || err != nil || at.Zone != "" || given.Zone() == "" || !given.WithZone("").IsLinkLocalUnicast() || !at.IP.Equal(given.AsSlice()) {
		return a
	}
	return &net.TCPAddr{IP: at.IP, Port: at.Port, Zone: given.Zone()}
}

// Counts implements [hw.CountingListener].
func (l *listener) Counts() hw.ListenerCounts { return l.startups.now() }

// Qual is the listener's port.
func (l *listener) Qual() uint64 { return l.qual }

// Close stops listening, closes the connections whose request has not come, and waits
// until no call of OnRequest is in progress.
func (l *listener) Close() error {
	const op = "iwarp.Listener.Close"
	if l == nil {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandlePSP, "no listener")
	}
	if !l.startups.close() {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandlePSP, "the listener is closed")
	}
	l.quit()
	_ = l.ln.Close()
	<-l.done
	l.greeting.Wait()
	l.dev.Unuse(soft.Listeners)
	return nil
}

var listenerLabel = labels.Of("iwarp: a listener")

// serve is the listener's goroutine.
func (l *listener) serve() {
	listenerLabel.Set()
	defer close(l.done)
	defer l.spare.give()
	for {
		conn := l.accept()
		if conn == nil {
			return
		}
		s := l.admit(conn)
		if s == nil {
			_ = conn.Close()
			return
		}
		l.greeting.Add(1)
		go l.greet(s)
	}
}

// acceptAgain is the time after which an accept that failed is tried again.
const acceptAgain = 10 * time.Millisecond

// accept returns the next connection, or nil if the listener is closed.
//
// While no descriptor is free, accept refuses each peer at once: it closes the spare, accepts the
// peer with that descriptor, finds that it can't open a spare again, and closes the connection. It
// closes the spare only when a peer waits, since the system refuses an accept for want of a
// descriptor before it looks for a peer. Another goroutine that opens something behind that close
// may get the descriptor before the peer does. Then accept fails, and tries again until a
// descriptor is free, which becomes the spare; the peers wait until then.
func (l *listener) accept() net.Conn {
	for {
		conn, err := l.ln.Accept()
		switch {
		case err == nil:
			scarce := l.spare.take()
			if !isScarce(scarce) {
				l.failing = false
				return conn
			}
			l.startups.refused()
			l.startups.onDrop(&hw.Cause{
				Layer: hw.LayerTCP, Local: conn.LocalAddr(), Remote: conn.RemoteAddr(), Err: scarce,
				Text: "closed a connection at once: this process or the system has no file descriptor left (ulimit -n)",
			})
			_ = conn.Close()
			_ = l.spare.take()
		case errors.Is(err, net.ErrClosed):
			return nil
		case isScarce(err) && l.spare.held() && l.peerWaits():
			l.spare.give()
		case isScarce(err) && l.spare.held():
			if !l.await(acceptAgain) {
				return nil
			}
		default:
			_ = l.spare.take()
			l.report(err)
			if !l.await(acceptAgain) {
				return nil
			}
		}
	}
}

// peerWaits reports whether a peer waits to be accepted, or may: not every listener tells.
func (l *listener) peerWaits() bool {
	waits := true
	withSocket(l.ln, func(fd int) { waits = mayAccept(fd) })
	return waits
}

// report reports an accept that failed, unless the one before it failed too.
func (l *listener) report(err error) {
	if !l.failing {
		l.failing = true
		l.startups.onDrop(&hw.Cause{Layer: hw.LayerTCP, Local: l.ln.Addr(), Err: err})
	}
}

// admit enters a connection as soon as there is a place. It returns nil if the listener
// is closed first.
func (l *listener) admit(conn net.Conn) *startup {
	for {
		s, wait := l.startups.enter(conn)
		if s != nil || wait == 0 || !l.await(wait) {
			return s
		}
	}
}

// await waits for the time d, or until a start-up has ended. It returns false if the
// listener is closed.
func (l *listener) await(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.startups.ended:
	case <-l.life.Done():
		return false
	}
	return true
}

// trace is a start-up's connection, with its trace if it has one. It returns nil if Config.Trace did not return, and
// reports that.
func (l *listener) trace(s *startup) net.Conn {
	ctx, cancel := context.WithDeadline(l.life, s.due)
	defer cancel()
	conn, err := l.dev.traced(ctx, s.conn, there)
	if err == nil {
		return conn
	}
	if l.life.Err() == nil {
		cause := attemptCause(err)
		cause.Local, cause.Remote = s.conn.LocalAddr(), s.conn.RemoteAddr()
		l.startups.onDrop(cause)
	}
	l.startups.end(s, true)
	_ = s.conn.Close()
	return nil
}

// greet reads a connection's request and offers it.
func (l *listener) greet(s *startup) {
	listenerLabel.Set()
	defer l.greeting.Done()
	l.dev.tune(s.conn)
	r := &request{dev: l.dev, qual: l.qual}
	if r.conn = l.trace(s); r.conn == nil {
		return
	}
	var first []byte
	err := readFrame(asking{r.conn, l.startups, s}, func(b []byte) (err error) {
		r.frame, _, err = wire.ParseMPARequest(b)
		first = b
		return hasKey(b, mpaRequest, err)
	})
	if err != nil {
		if other := spoke(first, err); other != "" {
			l.startups.foreign(s, other)
		}
	}
	l.startups.end(s, err == nil)
	if err != nil {
		_ = r.conn.Close()
		return
	}
	r.frame.Private = append([]byte(nil), r.frame.Private...) // keeps nothing else of what was read
	_ = r.conn.SetDeadline(time.Time{})
	if r.Offer(&r.dev.Device, func() { _ = r.conn.Close() }, func() bool { return l.onRequest(r) }) {
		r.decline()
	}
}
