//go:build !unix

package inspect

import "net"

// waits reports whether a visitor waits to be accepted: not known on this system.
func waits(net.Listener) bool { return false }
