//go:build unix

package main

import (
	"syscall"
	"time"
)

// processorTime is the processor time that the process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// limitFiles bounds the number of descriptors that the process may have.
func limitFiles(n uint64) {
	var r syscall.Rlimit
	check(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r))
	r.Cur = min(r.Max, n)
	check(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &r))
}
