//go:build !unix

package host

import "time"

// ProcessorTime is unknown on this system.
func ProcessorTime() (used time.Duration, ok bool) { return 0, false }

// LimitFiles does nothing on this system.
func LimitFiles(uint64) error { return nil }

// Switches is unknown on this system.
func Switches() (n int64, ok bool) { return 0, false }
