package iwarp

import (
	"net"
	"syscall"
	"time"
)

// port is a socket as the data path sees it. A connection is staged if it has no
// descriptor that this package can use: then only the writer writes, and the receiver
// reads nothing straight into memory, because both may block.
type port struct {
	// Immutable.
	raw syscall.RawConn // nil if the connection is staged
	// fd is the descriptor if owned, which says that nobody else may close the connection.
	fd    uintptr
	owned bool

	portState
}

// brief is how many bytes a read into the buffer asks for where few are expected.
const brief = 8 << 10

func (p *port) staged() bool { return p.raw == nil }

// open finds out what kind of connection conn is, which nobody else closes if owned.
func (p *port) open(conn net.Conn, owned bool) {
	if haveRaw {
		// Only these two types: a type that embeds one may do more in its Write.
		switch c := conn.(type) {
		case *net.TCPConn:
			p.raw, _ = c.SyscallConn()
		case *net.UnixConn:
			p.raw, _ = c.SyscallConn()
		}
	}
	if owned && p.raw != nil {
		_ = p.raw.Control(func(fd uintptr) { p.fd, p.owned = fd, true })
	}
	p.bind()
}

// withSocket calls f with the descriptor of the connection or listener c, or of the connection that
// c wraps, unless there is none or it is closed.
func withSocket(c any, f func(fd int)) {
	if over, ok := c.(interface{ NetConn() net.Conn }); ok { // TLS
		c = over.NetConn()
	}
	socket, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := socket.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { f(int(fd)) })
	}
}

// tune sets the options of the TCP connection that carries conn, if one does. It ignores
// errors, because the connection works without the options.
func (d *device) tune(conn net.Conn) {
	tcp, set := tcpUnder(conn), &d.set
	if tcp == nil {
		return
	}
	_ = tcp.SetNoDelay(true)
	d.steer(tcp)
	if set.buffer > 0 {
		_ = tcp.SetReadBuffer(set.buffer)
		_ = tcp.SetWriteBuffer(set.buffer)
	}
	if set.keepalive == 0 { // TCP's keep-alive stays as the dialer or the listener has set it
		return
	}
	// Probes begin after a third of the time, and give up at its end.
	third := max(set.keepalive/3, time.Second)
	_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: third, Interval: max(third/2, time.Second), Count: 4})
}
