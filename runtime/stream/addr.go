package stream

import (
	"cmp"
	"context"
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
	named := addr{network: ia.Attr().Provider}
	if a == nil {
		return named
	}
	named.hostPort = a.String()
	if _, _, err := net.SplitHostPort(named.hostPort); err != nil {
		named.hostPort = net.JoinHostPort(named.hostPort, strconv.FormatUint(qual, 10))
	}
	return named
}

// addressError is the error of a call that was given an address, and maybe no adapter.
func addressError(ctx context.Context, op string, ia *dat.IA, address string, err error) error {
	network := cmp.Or(ia.Attr().Provider, "rdma")
	return &net.OpError{Op: op, Net: network, Addr: addr{network, address}, Err: timed(ofDeadline(ctx, err))}
}

// portOf is the port of "host:port", or 0.
func portOf(address string) uint64 {
	_, port, _ := net.SplitHostPort(address)
	qual, _ := strconv.ParseUint(port, 10, 16)
	return qual
}
