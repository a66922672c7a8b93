//go:build linux && cgo

package ibv

// #include "shim.h"
import "C"

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"

	"godat/hw"
)

// listener implements [hw.Listener]. It has an identifier of the connection manager for
// each of the device's addresses, all with one port.
type listener struct {
	dev       *device
	key       uint64
	qual      atomic.Uint64 // set before the first request can come
	addr      address
	onRequest func(hw.Request) bool

	ids    []*C.struct_gc_id // of Listen's goroutine, and then of the first that calls Close
	closed atomic.Bool
}

const (
	defaultBacklog = 128
	// portTries is how often Listen and Connect let the kernel choose another port after
	// one that was in use.
	portTries = 16
)

// Listen implements [hw.Device].
func (d *device) Listen(cfg hw.ListenConfig) (hw.Listener, error) {
	const op = "ibv.Listen"
	addrs, err := d.listenAddresses(op, &cfg)
	if err != nil {
		return nil, err
	}
	if err := d.adopt(op); err != nil {
		return nil, err
	}
	l := &listener{dev: d, onRequest: cfg.OnRequest}
	l.key = enlist(d, d.listeners, l)
	for try := 0; ; try++ {
		err = l.open(op, addrs, uint16(cfg.Qual), cfg.Backlog)
		if err == nil {
			return l, nil
		}
		l.drop()
		if cfg.Qual != 0 || !errors.Is(err, hw.ErrConnQualInUse) || try == portTries {
			l.leave()
			return nil, err
		}
	}
}

func (d *device) listenAddresses(op string, cfg *hw.ListenConfig) ([]netip.Addr, error) {
	switch {
	case cfg.OnRequest == nil:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "OnRequest is nil")
	case cfg.Qual > hw.MaxQual:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg2, "connection qualifier %d is no port; the last is %d", cfg.Qual, hw.MaxQual)
	case cfg.Addr == "":
		return d.addresses, nil
	}
	ip, err := netip.ParseAddr(cfg.Addr)
	if err != nil {
		return nil, hw.Errorf(op, hw.InvalidAddress, hw.AddressMalformed, "%w", err)
	}
	ip = ip.Unmap()
	switch {
	case !ip.IsUnspecified():
		return []netip.Addr{ip}, nil
	case ip.Is6(): // as in package net, those of both families
		return d.addresses, nil
	}
	addrs := slices.DeleteFunc(slices.Clone(d.addresses), netip.Addr.Is6)
	if len(addrs) == 0 {
		return nil, hw.Errorf(op, hw.InvalidAddress, hw.AddressUnsupported, "%s has no IPv4 address", d.name)
	}
	return addrs, nil
}

// open listens on each address. When port is 0, the kernel chooses a port for the first
// address, and the other addresses use the same.
func (l *listener) open(op string, addrs []netip.Addr, port uint16, backlog int) error {
	if backlog <= 0 {
		backlog = defaultBacklog
	}
	for i, a := range addrs {
		own, err := l.openOne(op, netip.AddrPortFrom(a, port), backlog)
		if err != nil {
			return err
		}
		port = own.Port()
		if i == 0 {
			l.addr = address(own)
		}
	}
	return nil
}

func (l *listener) openOne(op string, at netip.AddrPort, backlog int) (netip.AddrPort, error) {
	var id *C.struct_gc_id
	if errno := C.gd_cm_new(l.dev.c, C.uint64_t(l.key), &id); errno != 0 {
		return at, resourceError(op, hw.ResourceDevice, syscall.Errno(errno))
	}
	l.ids = append(l.ids, id)
	sa := sockaddr(at)
	errno := C.gd_cm_bind(id, &sa)
	if errno == 0 && C.GoString(C.gd_cm_device(id)) != l.dev.name {
		errno = C.int(syscall.EADDRNOTAVAIL)
	}
	var local, remote C.struct_sockaddr_storage
	if errno == 0 {
		C.gd_cm_addresses(id, &local, &remote)
		l.qual.Store(uint64(addrPort(&local).Port()))
		errno = C.gd_cm_listen(id, C.int(backlog))
	}
	switch e := syscall.Errno(errno); e {
	case 0:
	case syscall.EADDRINUSE:
		return at, hw.Errorf(op, hw.ConnQualInUse, hw.NoSubtype, "port %d: %w", at.Port(), e)
	case syscall.EADDRNOTAVAIL, syscall.ENODEV, syscall.EINVAL:
		return at, hw.Errorf(op, hw.InvalidAddress, hw.AddressUnsupported, "%s is not an address of %s: %w", at.Addr(), l.dev.name, e)
	case syscall.EACCES, syscall.EPERM:
		return at, hw.Errorf(op, hw.ConnQualUnavailable, hw.NoSubtype, "port %d: %w", at.Port(), e)
	default:
		return at, internalError(op, e)
	}
	return addrPort(&local), nil
}

// drop destroys the listener's identifiers.
func (l *listener) drop() {
	for _, id := range l.ids {
		C.gd_cm_destroy(id)
	}
	l.ids = nil
}

func (l *listener) Addr() net.Addr { return l.addr }

func (l *listener) Qual() uint64 { return l.qual.Load() }

func (l *listener) Close() error {
	if l.closed.Swap(true) {
		return hw.Errorf("ibv.Listener.Close", hw.InvalidHandle, hw.HandlePSP, "closed twice")
	}
	l.drop()
	l.leave()
	return nil
}

// leave removes the listener from the device's table.
func (l *listener) leave() {
	unlist(l.dev, l.dev.listeners, l.key)
	l.dev.disown()
}

// arrive hands a connection request to the consumer, and rejects it as the provider
// when the consumer doesn't take it. The watcher's goroutine calls it.
func (l *listener) arrive(e event) {
	d := l.dev
	d.watcher.own.Check()
	c := d.newConn(e.id)
	C.gd_cm_set_key(e.id, C.uint64_t(c.key)) // before the watcher takes the identifier's next event
	data, peer, tailed := d.transport.unpack(msgRequest, e.private)
	c.farewells.peer, c.tailed = peer, tailed
	r := &request{conn: c, qual: l.Qual(), private: data, first: e}
	if C.GoString(C.gd_cm_device(e.id)) != d.name || !l.onRequest(r) {
		r.refuse()
	}
}
