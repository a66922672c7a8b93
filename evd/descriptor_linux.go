package evd

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// descriptor is an eventfd that is readable while it is set. The CNO's mu guards
// it.
type descriptor struct {
	fd  int
	up  bool
	buf [8]byte
}

func newDescriptor() (*descriptor, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	return &descriptor{fd: fd}, nil
}

func (d *descriptor) number() uintptr { return uintptr(d.fd) }

// set makes the descriptor readable or not. If a program has read from it, against
// the rule of CNO.FD, it becomes readable again at the next trigger.
func (d *descriptor) set(up bool) {
	if d.up == up {
		return
	}
	d.up = up
	d.buf = [8]byte{}
	if !up {
		_, _ = unix.Read(d.fd, d.buf[:])
		return
	}
	d.buf[0], d.buf[7] = 1, 1 // not zero in either byte order, and no overflow
	_, _ = unix.Write(d.fd, d.buf[:])
}

func (d *descriptor) close() { _ = unix.Close(d.fd) }
