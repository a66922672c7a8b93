//go:build linux || darwin

package spent

import (
	"syscall"
	"time"
)

// Time is what the process has had of processors, for itself.
func Time() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano())
}

// Most has the system kill this process when it has had so much of processors, in whole seconds. It can't be taken back.
func Most(d time.Duration) error {
	n := uint64(max(d, time.Second) / time.Second)
	return syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: n, Max: n})
}
