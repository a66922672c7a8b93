package soft

import (
	"time"

	"golang.org/x/sys/unix"
)

// rest sleeps by the system's clock, not by that of a testing/synctest bubble: the caller may hold a lock, and a
// bubble's clock stands still while somebody waits for one.
func rest(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // one that is interrupted is short
}
