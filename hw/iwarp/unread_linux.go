package iwarp

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// unread reports whether octets of the peer wait in the connection's socket; false if the
// connection has no socket.
func unread(conn net.Conn) bool {
	if over, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = over.NetConn()
	}
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCINQ) })
	return n > 0
}
