//go:build !linux

package iwarp

import (
	"net"
	"time"
)

// segmentSize is not known here.
func segmentSize(*net.TCPConn) int { return 0 }

// limitUnacked leaves it to the system's own bound.
func limitUnacked(*net.TCPConn, time.Duration) {}
