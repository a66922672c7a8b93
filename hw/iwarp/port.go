package iwarp

import (
	"net"
	"syscall"
	"time"
)

// port is a connection as the data path sees it. On one that is staged, which has
// no descriptor that we know how to use, only the sender writes, and nothing is
// read into memory directly: both may block.
type port struct {
	raw    syscall.RawConn
	staged bool
	portState
}

// openPort looks at what kind of connection it is, and sets its options.
func openPort(conn net.Conn, set *settings) port {
	var p port
	if tcp, ok := conn.(*net.TCPConn); ok {
		tune(tcp, set)
	}
	p.staged = true
	if haveRaw {
		// These and no others: a type that embeds one may do more in its Write.
		switch c := conn.(type) {
		case *net.TCPConn:
			p.raw, _ = c.SyscallConn()
		case *net.UnixConn:
			p.raw, _ = c.SyscallConn()
		}
		p.staged = p.raw == nil
	}
	return p
}

// tune sets a TCP connection's options; what a system lacks it does without.
func tune(tcp *net.TCPConn, set *settings) {
	_ = tcp.SetNoDelay(true)
	if set.buffer > 0 {
		_ = tcp.SetReadBuffer(set.buffer)
		_ = tcp.SetWriteBuffer(set.buffer)
	}
	if set.keepalive <= 0 {
		_ = tcp.SetKeepAlive(false)
		return
	}
	// Probes begin after a third of the time and end with it.
	third := max(set.keepalive/3, time.Second)
	_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: third, Interval: max(third/2, time.Second), Count: 4})
	limitUnacked(tcp, set.keepalive)
}
