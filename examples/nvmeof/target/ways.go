package target

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"godat/examples/nvmeof/nvme"
)

// ways are those to the subsystem that a discovery controller tells its host.
type ways struct {
	entries    []nvme.DiscoveryEntry
	generation uint64 // counts the changes of the entries
}

// look finds the ways there are now.
func (w *ways) look(q *queue) {
	if now := q.target.waysFrom(q.from, q.local); w.generation == 0 || !slices.Equal(now, w.entries) {
		w.entries = now
		w.generation++
	}
}

// SetElsewhere says at which addresses, host:port, other targets serve the same subsystem, in
// place of what it said before. The discovery log has them behind the addresses of this target, so that a
// host finds all of them at one. It may be called at any time.
func (t *Target) SetElsewhere(addrs ...string) error {
	for _, addr := range addrs {
		if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
			return fmt.Errorf("target: %q is no address, as 10.0.0.1:4420 is one", addr)
		}
	}
	addrs = slices.Clone(addrs)
	t.elsewhere.Store(&addrs)
	return nil
}

// waysFrom are the ways to the subsystem, each once: first the address at which the host reached the
// target, then those of the same listener and of the others, and then those of other targets. A
// listener on all addresses of the machine has those that hosts elsewhere can use.
func (t *Target) waysFrom(from *listener, local string) (entries []nvme.DiscoveryEntry) {
	add := func(host, port string) {
		ip, err := netip.ParseAddr(host)
		e := nvme.DiscoveryEntry{
			IPv6: err == nil && ip.Is6() && !ip.Is4In6(), Subsystem: t.cfg.Subsystem, Address: host, Service: port,
			Port: uint16(len(entries) + 1), AdminSize: adminEntries,
		}
		if !slices.ContainsFunc(entries, func(o nvme.DiscoveryEntry) bool { return o.Address == host && o.Service == port }) {
			entries = append(entries, e)
		}
	}
	addAll := func(l *listener, host, port string) {
		if !l.everywhere {
			add(host, port)
			return
		}
		for _, global := range globals(t.interfaces) {
			add(global, port)
		}
	}
	host, port, err := net.SplitHostPort(local)
	if err != nil {
		host, port = local, ""
	}
	if _, listens, _ := net.SplitHostPort(from.Addr()); port == "" || port == "0" {
		port = listens
	}
	add(host, port)
	addAll(from, host, port)
	for _, l := range t.listeners {
		if host, port, _ := net.SplitHostPort(l.Addr()); l != from {
			addAll(l, host, port)
		}
	}
	for _, addr := range *t.elsewhere.Load() {
		host, port, _ := net.SplitHostPort(addr)
		add(host, port)
	}
	return entries
}

// globals are the global addresses of the machine, in order.
func globals(interfaces func() ([]net.Addr, error)) (addresses []string) {
	all, err := interfaces()
	if err != nil {
		return nil // what the host took is a way in any case
	}
	for _, a := range all {
		prefix, err := netip.ParsePrefix(a.String())
		if ip := prefix.Addr().Unmap(); err == nil && ip.IsGlobalUnicast() {
			addresses = append(addresses, ip.String())
		}
	}
	slices.Sort(addresses)
	return slices.Compact(addresses)
}

// listensEverywhere reports whether a target that listens at an address, on an adapter of that
// name, listens on all addresses of the machine. Other providers than iwarp have the addresses
// of their device.
func listensEverywhere(adapter, address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip, bad := netip.ParseAddr(host)
	return adapter == "iwarp" && (err != nil && address == "" || err == nil && host == "" || bad == nil && ip.IsUnspecified())
}
