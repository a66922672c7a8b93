//go:build !linux

package iwarp

import (
	"net"
	"time"
)

// segmentSize returns 0: the size is unknown on this system.
func segmentSize(*net.TCPConn) int { return 0 }

// paced returns false: it is unknown on this system.
func paced(*net.TCPConn) bool { return false }

// limitUnacked does nothing: the system's own bound counts.
func limitUnacked(*net.TCPConn, time.Duration) {}
