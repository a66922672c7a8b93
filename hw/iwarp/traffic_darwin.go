package iwarp

import (
	"net"

	"golang.org/x/sys/unix"
)

// trafficOf is a connection's traffic; ok is false if the system does not tell. This system does
// not count what the peer has acknowledged. What TCP sends for the first time needs room that the
// peer has given, and so passes as well.
func trafficOf(tcp *net.TCPConn) (t traffic, ok bool) {
	withSocket(tcp, func(fd int) {
		info, err := unix.GetsockoptTCPConnectionInfo(fd, unix.IPPROTO_TCP, unix.TCP_CONNECTION_INFO)
		if ok = err == nil; ok {
			t = traffic{waiting: uint64(info.Snd_sbbytes), passed: info.Txbytes - info.Txretransmitbytes, came: info.Rxbytes}
		}
	})
	return t, ok
}
