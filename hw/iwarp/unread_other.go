//go:build !linux

package iwarp

import "net"

// unread returns false: what waits in a socket is unknown on this system.
func unread(net.Conn) bool { return false }
