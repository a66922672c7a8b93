//go:build unix

package host

import (
	"math"
	"syscall"
	"time"
)

// ProcessorTime is the processor time that the process has used. ok is false where it
// is not known.
func ProcessorTime() (used time.Duration, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}

// LimitFiles bounds the number of descriptors that the process may have.
func LimitFiles(n uint64) error {
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil {
		return err
	}
	lower(&r.Cur, r.Max, n)
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &r)
}

// lower sets a limit to n, or to the most. Systems have different types for limits.
func lower[T int64 | uint64](limit *T, most T, n uint64) {
	*limit = min(most, T(min(n, math.MaxInt64)))
}

// Switches is how often the process's threads gave their processor up, and lost it to others. ok is
// false where it is not known.
func Switches() (n int64, ok bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return int64(u.Nvcsw) + int64(u.Nivcsw), true
}
