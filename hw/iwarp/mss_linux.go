package iwarp

import (
	"net"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// segmentSize is the number of octets that TCP puts into a segment; 0 if unknown.
func segmentSize(tcp *net.TCPConn) (mss int) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			mss = int(info.Snd_mss)
		}
	})
	return mss
}

// paced reports whether TCP spreads over time what it is given to send, as the congestion
// control bbr does.
func paced(tcp *net.TCPConn) (yes bool) {
	if tcp == nil {
		return false
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		name, err := unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		yes = err == nil && strings.HasPrefix(name, "bbr")
	})
	return yes
}

// limitUnacked bounds how long sent data may stay unacknowledged before TCP gives up.
func limitUnacked(tcp *net.TCPConn, d time.Duration) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	})
}
