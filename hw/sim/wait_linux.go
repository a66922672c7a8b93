package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// waiter puts a poller to sleep on two descriptors: one that the device makes readable,
// like a completion channel, and one for Wake. Its wait blocks the thread in poll(2), as
// a real device's poller does.
type waiter struct {
	done, woken atomic.Int32 // -1 when closed
}

func newWaiter() (*waiter, error) {
	done, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	woken, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		_ = unix.Close(done)
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	w := &waiter{}
	w.done.Store(int32(done))
	w.woken.Store(int32(woken))
	return w, nil
}

func (w *waiter) completed() { signal(w.done.Load()) }
func (w *waiter) wake()      { signal(w.woken.Load()) }

func (w *waiter) wait() error {
	fds := []unix.PollFd{{Fd: w.done.Load(), Events: unix.POLLIN}, {Fd: w.woken.Load(), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); err == nil {
			break
		} else if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("poll: %w", err)
		}
	}
	var count [8]byte
	for _, fd := range fds {
		if fd.Revents&unix.POLLIN != 0 {
			_, _ = unix.Read(int(fd.Fd), count[:]) // resets the whole count to 0
		}
	}
	return nil
}

func (w *waiter) close() {
	_ = unix.Close(int(w.done.Swap(-1)))
	_ = unix.Close(int(w.woken.Swap(-1)))
}

// signal adds one to an eventfd. The write fails only when the counter is full, and then
// the descriptor is readable anyway.
func signal(fd int32) {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(int(fd), one[:])
}
