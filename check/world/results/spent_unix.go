//go:build unix

package main

import (
	"syscall"
	"time"
)

// spent is what the process has had of processors, for itself.
func spent() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano())
}
