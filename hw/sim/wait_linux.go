package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// waiter puts a poller to sleep on a descriptor that the device, like a completion channel, and
// Wake make readable. wait blocks the thread in poll(2), and sleep the goroutine alone.
type waiter struct {
	file   *os.File // has the descriptor
	conn   syscall.RawConn
	fd     atomic.Int32 // -1 when closed
	readFn func(fd uintptr) bool
	count  [8]byte // of one waiter at a time
}

func newWaiter() (*waiter, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	w := &waiter{file: os.NewFile(uintptr(fd), "eventfd")}
	w.fd.Store(int32(fd))
	w.readFn = w.read
	w.conn, err = w.file.SyscallConn()
	return w, err
}

func (w *waiter) completed() { w.wake() }

// wake adds one to the eventfd. The write fails only when the counter is full, and then the
// descriptor is readable anyway.
func (w *waiter) wake() {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(int(w.fd.Load()), one[:])
}

func (w *waiter) wait() error {
	fds := []unix.PollFd{{Fd: w.fd.Load(), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); err == nil {
			break
		} else if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("poll: %w", err)
		}
	}
	w.read(uintptr(fds[0].Fd))
	return nil
}

func (w *waiter) sleep() error { return w.conn.Read(w.readFn) }

// read resets the whole count to 0. It reports whether there was any.
func (w *waiter) read(fd uintptr) bool {
	_, err := unix.Read(int(fd), w.count[:])
	return !errors.Is(err, unix.EAGAIN)
}

func (w *waiter) close() {
	w.fd.Store(-1)
	_ = w.file.Close()
}
