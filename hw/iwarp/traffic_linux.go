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
			t = traffic{waiting: uint64(max(queued, 0)), passed: info.Bytes_acked, came: info.Bytes_received, peer: heardBy(info)}
		}
	})
	return t, ok
}

// oftenAgain is how often TCP has sent the same octets, or asked a full peer, when the network is no longer just slow.
const oftenAgain = 2

// heardBy is what TCP knows of the peer's system. A system whose process takes nothing answers the question whether
// there is room.
func heardBy(info *unix.TCPInfo) heard {
	switch {
	case info.Unacked > 0 && info.Retransmits >= oftenAgain, info.Probes >= oftenAgain:
		return isLost
	case info.Unacked == 0 && info.Probes == 0:
		return isThere
	}
	return isUnknown
}
