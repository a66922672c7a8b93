package polling

import (
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// waker lets the poller's thread wake a goroutine. It is an eventfd: a write to one
// costs a locked thread 8 µs, a send on a channel 62.
type waker struct {
	fd   int
	file *os.File // of fd, in the network poller
	one  uint64   // what is written; never changes
	buf  [8]byte  // what is read
}

func newWaker() (*waker, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	w := &waker{fd: fd, file: os.NewFile(uintptr(fd), "eventfd"), one: 1}
	if err := w.file.SetReadDeadline(time.Time{}); err != nil {
		_ = w.file.Close()
		return nil, fmt.Errorf("eventfd in the network poller: %w", err)
	}
	return w, nil
}

// wake ends the current wait or the next one. The write can't block, so it bypasses the
// scheduler.
func (w *waker) wake() {
	for {
		_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(w.fd), uintptr(unsafe.Pointer(&w.one)), 8)
		if errno != unix.EINTR {
			return // a full counter is readable, which is all that a wait needs
		}
	}
}

// wait sleeps until wake was called. One goroutine waits at a time.
func (w *waker) wait() { _, _ = w.file.Read(w.buf[:]) }

func (w *waker) close() error { return w.file.Close() }
