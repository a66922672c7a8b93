//go:build unix

package main

import (
	"errors"
	"syscall"
	"time"
)

// processorTime is the processor time of this process.
func processorTime() (time.Duration, error) {
	var usage syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), err
}

// stop stops a process after a time, and lets it go on after another one.
func (p *process) stop(after, again time.Duration) error {
	time.Sleep(after)
	err := p.Process.Signal(syscall.SIGSTOP)
	time.Sleep(again)
	return errors.Join(err, p.Process.Signal(syscall.SIGCONT))
}
