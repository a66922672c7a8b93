package iwarp

import (
	"net"

	"golang.org/x/sys/unix"
)

// trafficOf is a connection's traffic; ok is false if the system does not tell.
func trafficOf(tcp *net.TCPConn) (t traffic, ok bool) {
	withSocket(tcp, func(fd int) {
		queued, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
		info, also := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if ok = err == nil && also == nil; ok {
			t = traffic{waiting: uint64(max(queued, 0)), passed: info.Bytes_acked, came: info.Bytes_received}
		}
	})
	return t, ok
}
