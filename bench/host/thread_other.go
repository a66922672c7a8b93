//go:build !linux

package host

import "time"

// ThreadTime is unknown on this system.
func ThreadTime() (used time.Duration, ok bool) { return 0, false }
