//go:build !linux

package iwarp

import (
	"errors"
	"net"
)

// unread returns false: what waits in a socket is unknown on this system.
func unread(net.Conn) bool { return false }

// segmentSize returns 0: the size is unknown on this system.
func segmentSize(*net.TCPConn) int { return 0 }

// paced returns false: it is unknown on this system.
func paced(*net.TCPConn) bool { return false }

// steer does nothing: the system's congestion control stays.
func (*device) steer(*net.TCPConn) {}

// mayHave returns an error: this system lets no program choose.
func mayHave(string) error { return errors.ErrUnsupported }
