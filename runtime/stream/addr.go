package stream

import (
	"net"
	"strconv"

	dat "godat/runtime"
)

// addr is the address of an end: its provider is the network, and the address is
// "host:port", as a dialer takes it.
type addr struct{ network, hostPort string }

// Network is the name of the provider.
func (a addr) Network() string { return a.network }

// String is "host:port".
func (a addr) String() string { return a.hostPort }

// newAddr makes an address of a provider's own one, which need not have the port in it.
func newAddr(ia *dat.IA, a net.Addr, qual uint64) addr {
	network := ia.Attr().Provider
	if a == nil {
		return addr{network, ""}
	}
	if _, _, err := net.SplitHostPort(a.String()); err == nil {
		return addr{network, a.String()}
	}
	return addr{network, net.JoinHostPort(a.String(), strconv.FormatUint(qual, 10))}
}

// portOf is the port of "host:port", or 0.
func portOf(address string) uint64 {
	_, port, _ := net.SplitHostPort(address)
	qual, _ := strconv.ParseUint(port, 10, 16)
	return qual
}
