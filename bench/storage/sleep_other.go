//go:build !linux

package storage

import "time"

// newSleeper returns Go's sleep, which may end a millisecond late.
func newSleeper() (sleep func(time.Duration), end func()) { return time.Sleep, func() {} }
