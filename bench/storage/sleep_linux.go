package storage

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// newSleeper returns a sleep that ends within microseconds: Go's timers may end a millisecond late
// when nothing else runs. end gives back what it has.
func newSleeper() (sleep func(time.Duration), end func()) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return time.Sleep, func() {}
	}
	f, expirations := os.NewFile(uintptr(fd), "timer"), make([]byte, 8)
	return func(d time.Duration) {
		at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
		if unix.TimerfdSettime(fd, 0, &at, nil) == nil {
			_, _ = f.Read(expirations)
		}
	}, func() { _ = f.Close() }
}
