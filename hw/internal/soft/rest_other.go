//go:build !linux

package soft

import "time"

// rest sleeps.
func rest(d time.Duration) { time.Sleep(d) }
