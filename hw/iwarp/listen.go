package iwarp

import (
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
)

// listener takes connections and the requests that come on them.
type listener struct {
	// Immutable.
	dev       *device
	ln        net.Listener
	qual      uint64
	onRequest func(hw.Request) bool
	room      chan struct{} // holds one for each start-up in progress
	quit      chan struct{}
	done      chan struct{}

	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]struct{} // start-ups in progress
	peers  map[netip.Addr]int    // how many of them per address
	wg     sync.WaitGroup
}

// Listen listens at cfg.Addr, or the device's address if that is empty. More than
// cfg.Backlog start-ups at a time wait in the system's own queue; more than the
// parameter halfopenip from one address are refused.
func (d *device) Listen(cfg hw.ListenConfig) (hw.Listener, error) {
	const op = "iwarp.Listen"
	switch {
	case cfg.OnRequest == nil || cfg.Backlog < 0:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "no OnRequest, or a negative backlog")
	case cfg.Qual > maxPort:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "connection qualifier %d is no TCP port", cfg.Qual)
	}
	if err := d.Use("Listen", soft.Listeners); err != nil {
		return nil, err
	}
	host := cfg.Addr
	if host == "" {
		host = d.host
	}
	ln, err := d.provider.cfg.Listen(net.JoinHostPort(host, strconv.FormatUint(cfg.Qual, 10)))
	if err != nil {
		d.Unuse(soft.Listeners)
		return nil, listenError(op, err)
	}
	backlog := d.set.halfOpen
	if cfg.Backlog > 0 {
		backlog = min(backlog, cfg.Backlog)
	}
	l := &listener{
		dev: d, ln: ln, qual: portOf(ln.Addr(), cfg.Qual), onRequest: cfg.OnRequest,
		room: make(chan struct{}, backlog), quit: make(chan struct{}), done: make(chan struct{}),
		conns: make(map[net.Conn]struct{}), peers: make(map[netip.Addr]int),
	}
	go l.serve()
	return l, nil
}

// listenError finds DAT's word for why it can't be listened.
func listenError(op string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return hw.Errorf(op, hw.ConnQualInUse, hw.NoSubtype, "%w", err)
	case errors.Is(err, syscall.EACCES):
		return hw.Errorf(op, hw.ConnQualUnavailable, hw.NoSubtype, "%w", err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return hw.Errorf(op, hw.InsufficientResources, hw.ResourceDevice, "%w", err)
	}
	return hw.Errorf(op, hw.InvalidAddress, hw.AddressUnsupported, "%w", err)
}

// portOf is the port of an address that has one, or the other.
func portOf(a net.Addr, other uint64) uint64 {
	if ap, err := netip.ParseAddrPort(a.String()); err == nil && ap.Port() != 0 {
		return uint64(ap.Port())
	}
	return other
}

// Addr is where it listens.
func (l *listener) Addr() net.Addr { return l.ln.Addr() }

// Qual is the port.
func (l *listener) Qual() uint64 { return l.qual }

// Close stops listening and gives up start-ups that are not complete. It waits
// until OnRequest is not called any more.
func (l *listener) Close() error {
	const op = "iwarp.Listener.Close"
	if l == nil {
		return hw.Errorf(op, hw.InvalidHandle, hw.HandlePSP, "no listener")
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return hw.Errorf(op, hw.InvalidHandle, hw.HandlePSP, "the listener is closed")
	}
	l.closed = true
	for conn := range l.conns {
		_ = conn.SetDeadline(past)
	}
	l.mu.Unlock()
	close(l.quit)
	_ = l.ln.Close()
	<-l.done
	l.wg.Wait()
	l.dev.Unuse(soft.Listeners)
	return nil
}

// serve is the listener's goroutine.
func (l *listener) serve() {
	defer close(l.done)
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case l.room <- struct{}{}:
		case <-l.quit:
			return
		}
		conn, err := l.ln.Accept()
		switch {
		case err == nil:
			if l.enter(conn) {
				go l.greet(conn)
				continue
			}
			_ = conn.Close()
		default: // out of descriptors, say; or closed, and then quit is
			pause.Reset(10 * time.Millisecond)
			select {
			case <-pause.C:
			case <-l.quit:
				return
			}
		}
		<-l.room
	}
}

// enter counts a start-up, unless its peer has too many of them.
func (l *listener) enter(conn net.Conn) bool {
	ip := peerOf(conn)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || ip.IsValid() && l.peers[ip] >= l.dev.set.halfOpenIP {
		return false
	}
	l.conns[conn] = struct{}{}
	l.peers[ip]++
	l.wg.Add(1)
	return true
}

// leave ends that.
func (l *listener) leave(conn net.Conn) {
	ip := peerOf(conn)
	l.mu.Lock()
	delete(l.conns, conn)
	if l.peers[ip]--; l.peers[ip] <= 0 {
		delete(l.peers, ip)
	}
	l.mu.Unlock()
	<-l.room
}

func peerOf(conn net.Conn) netip.Addr {
	if a := conn.RemoteAddr(); a != nil {
		if ap, err := netip.ParseAddrPort(a.String()); err == nil {
			return ap.Addr()
		}
	}
	return netip.Addr{}
}

// greet reads a connection's request and offers it.
func (l *listener) greet(conn net.Conn) {
	defer l.wg.Done()
	_ = conn.SetDeadline(time.Now().Add(l.dev.set.mpa))
	l.mu.Lock()
	if l.closed {
		_ = conn.SetDeadline(past)
	}
	l.mu.Unlock()
	l.dev.tune(conn)
	r := &request{dev: l.dev, conn: l.dev.traced(conn), qual: l.qual}
	err := readFrame(r.conn, func(b []byte) (err error) {
		r.frame, _, err = wire.ParseMPARequest(b)
		return err
	})
	l.leave(conn)
	if err != nil {
		_ = r.conn.Close()
		return
	}
	_ = r.conn.SetDeadline(time.Time{})
	if r.Pend(&r.dev.Device, func() { _ = r.conn.Close() }) && l.onRequest(r) {
		return
	}
	if r.Take() {
		r.decline()
	}
}
