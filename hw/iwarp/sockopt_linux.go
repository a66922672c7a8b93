package iwarp

import (
	"fmt"
	"net"
	"strings"

	"golang.org/x/sys/unix"
)

// unread reports whether octets of the peer wait in the connection's socket; false if the
// connection has no socket.
func unread(conn net.Conn) bool {
	n := 0
	withSocket(conn, func(fd int) { n, _ = unix.IoctlGetInt(fd, unix.SIOCINQ) })
	return n > 0
}

// segmentSize is the number of octets that TCP puts into a segment; 0 if unknown.
func segmentSize(tcp *net.TCPConn) (mss int) {
	withSocket(tcp, func(fd int) {
		if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
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
	withSocket(tcp, func(fd int) {
		name, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
		yes = err == nil && strings.HasPrefix(name, "bbr")
	})
	return yes
}

// steer gives a connection its congestion control: the one that was asked for, or one that does
// not pace if both ends are on this host. A connection that the program has made keeps its own.
func (d *device) steer(tcp *net.TCPConn) {
	name := d.set.congestion
	if name == "" {
		if !d.provider.owns || !sameHost(tcp.LocalAddr(), tcp.RemoteAddr()) || !paced(tcp) {
			return
		}
		name = "reno" // it is part of every kernel
	}
	withSocket(tcp, func(fd int) {
		_ = unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	})
}

// sameHost reports whether the ends of a connection are on one host: they have one address, or
// addresses of the loopback device.
func sameHost(local, remote net.Addr) bool {
	a, _ := local.(*net.TCPAddr)
	b, _ := remote.(*net.TCPAddr)
	return a != nil && b != nil && (b.IP.IsLoopback() || b.IP.Equal(a.IP))
}

// mayHave returns why connections can't have a congestion control, or nil.
func mayHave(congestion string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestion); err != nil {
		return fmt.Errorf("%w (net.ipv4.tcp_allowed_congestion_control has those that a program may choose)", err)
	}
	return nil
}
