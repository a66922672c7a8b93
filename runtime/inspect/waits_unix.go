//go:build unix

package inspect

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// waits reports whether a visitor waits to be accepted.
func waits(l net.Listener) (ready bool) {
	of, ok := l.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := of.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		ready = err == nil && n > 0
	})
	return err == nil && ready
}
