//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"godat/hw"
)

// sleeper parks a goroutine until the completion channel or Wake's descriptor is readable. Go's
// network poller watches one descriptor for it, that of an epoll which watches those two.
type sleeper struct {
	dev  *C.struct_gd_device
	file *os.File // nil until the device is open
	conn syscall.RawConn
	try  func(uintptr) bool

	errno C.int // of the last try
}

// openSleeper makes the device's sleeper.
func (d *device) openSleeper() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return hw.Errorf(opOpen, hw.InsufficientResources, hw.ResourceDevice, "epoll_create1: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // os.NewFile hands such a descriptor to the network poller
		_ = unix.Close(fd)
		return internalError(opOpen, err)
	}
	s := &d.sleeper
	s.dev, s.file, s.try = d.c, os.NewFile(uintptr(fd), "ibv: completions"), s.over
	fds := C.gd_watch_fds(d.c)
	for _, one := range []C.int{fds.channel, fds.wake} {
		if err := unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, int(one), &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(one)}); err != nil {
			return internalError(opOpen, err)
		}
	}
	s.conn, err = s.file.SyscallConn()
	return err
}

// over reports whether the wait is over, of which errno says how. The network poller tells of what came since
// it was asked last, so a look that takes nothing loses nothing.
func (s *sleeper) over(uintptr) bool {
	s.errno = C.gd_try_wait(s.dev)
	return syscall.Errno(s.errno) != syscall.EAGAIN
}

func (s *sleeper) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}

// Sleep implements [hw.Sleeper].
func (d *device) Sleep() error {
	const op = "ibv.Sleep"
	s := &d.sleeper
	var err error
	s.errno = 0
	if C.gd_begin_wait(d.c) {
		err = s.conn.Read(s.try)
	}
	C.gd_end_wait(d.c)
	if err != nil {
		return internalError(op, err)
	}
	return result(op, s.errno)
}
