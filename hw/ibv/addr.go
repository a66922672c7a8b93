//go:build linux && cgo

package ibv

// #include <netinet/in.h>
// #include "shim.h"
import "C"

import (
	"encoding/binary"
	"net/netip"
	"unsafe"
)

// address is an end's address: an IP address and a port.
type address netip.AddrPort

// Network implements [net.Addr].
func (address) Network() string { return "rdma" }

func (a address) String() string { return netip.AddrPort(a).String() }

// sockaddr is an address as the C library takes it. The zero AddrPort gives family 0,
// AF_UNSPEC.
func sockaddr(a netip.AddrPort) (s C.struct_sockaddr_storage) {
	ip := a.Addr()
	switch {
	case ip.Is4():
		in := (*C.struct_sockaddr_in)(unsafe.Pointer(&s))
		in.sin_family = C.AF_INET
		putPort(unsafe.Pointer(&in.sin_port), a.Port())
		*(*[4]byte)(unsafe.Pointer(&in.sin_addr)) = ip.As4()
	case ip.Is6():
		in := (*C.struct_sockaddr_in6)(unsafe.Pointer(&s))
		in.sin6_family = C.AF_INET6
		putPort(unsafe.Pointer(&in.sin6_port), a.Port())
		*(*[16]byte)(unsafe.Pointer(&in.sin6_addr)) = ip.As16()
	}
	return s
}

func putPort(at unsafe.Pointer, port uint16) {
	binary.BigEndian.PutUint16((*[2]byte)(at)[:], port)
}

// addrPort is the reverse of sockaddr.
func addrPort(s *C.struct_sockaddr_storage) netip.AddrPort {
	switch s.ss_family {
	case C.AF_INET:
		in := (*C.struct_sockaddr_in)(unsafe.Pointer(s))
		port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&in.sin_port))[:])
		return netip.AddrPortFrom(netip.AddrFrom4(*(*[4]byte)(unsafe.Pointer(&in.sin_addr))), port)
	case C.AF_INET6:
		in := (*C.struct_sockaddr_in6)(unsafe.Pointer(s))
		port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&in.sin6_port))[:])
		return netip.AddrPortFrom(netip.AddrFrom16(*(*[16]byte)(unsafe.Pointer(&in.sin6_addr))).Unmap(), port)
	}
	return netip.AddrPort{}
}
