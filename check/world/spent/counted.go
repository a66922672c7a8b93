//go:build linux || darwin

package spent

import (
	"syscall"
	"time"
)

// Time is what the process has had of processors, for itself and for its calls of the system: what Most counts.
func Time() time.Duration { return of(syscall.RUSAGE_SELF) }

// Children is what those of its children have had that have ended.
func Children() time.Duration { return of(syscall.RUSAGE_CHILDREN) }

func of(whom int) time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(whom, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Most has the system kill this process when it has had so much of processors, in whole seconds. It can't be taken back.
func Most(d time.Duration) error {
	n := uint64(max(d, time.Second) / time.Second)
	return syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: n, Max: n})
}
