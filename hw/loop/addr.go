package loop

import (
	"net/netip"
	"strconv"
	"strings"
)

// address is that of one end of a connection, or of a listener. It is a
// net.Addr.
type address struct {
	Device string
	Qual   uint64 // the connection qualifier; loop picks one for the initiator
}

// Network returns "loop".
func (address) Network() string { return Name }

// String returns "device:qualifier".
func (a address) String() string { return a.Device + ":" + strconv.FormatUint(a.Qual, 10) }

// isHere reports whether a host is the process's own in the words of a network: a loopback
// address, "localhost", or all addresses. So a program that says "127.0.0.1" runs on a
// network and here.
func isHere(host string) bool {
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return strings.EqualFold(host, "localhost")
	}
	ip = ip.Unmap()
	return ip.IsLoopback() || ip.IsUnspecified()
}
