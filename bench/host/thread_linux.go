package host

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime is the processor time that the calling thread has used. ok is false where it
// is not known.
func ThreadTime() (used time.Duration, ok bool) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
