package target

import (
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
	if now := q.target.waysFrom(q.local); w.generation == 0 || !slices.Equal(now, w.entries) {
		w.entries = now
		w.generation++
	}
}

// waysFrom are the ways to the subsystem: first the address at which the host reached the
// target, and if that listens on all addresses of the machine, the others, but for those that
// hosts elsewhere can't use.
func (t *Target) waysFrom(local string) []nvme.DiscoveryEntry {
	host, port, err := net.SplitHostPort(local)
	if err != nil {
		host, port = local, ""
	}
	_, listens, _ := net.SplitHostPort(t.Addr())
	if port == "" || port == "0" {
		port = listens
	}
	addresses := []string{host}
	if t.everywhere {
		addresses = append(addresses, others(host, t.interfaces)...)
	}
	var entries []nvme.DiscoveryEntry
	for i, address := range addresses {
		ip, err := netip.ParseAddr(address)
		entries = append(entries, nvme.DiscoveryEntry{
			IPv6: err == nil && ip.Is6() && !ip.Is4In6(), Subsystem: t.cfg.Subsystem, Address: address, Service: port,
			Port: uint16(i + 1), AdminSize: adminEntries,
		})
	}
	return entries
}

// others are the global addresses of the machine beside the one that a host took, in order.
func others(taken string, interfaces func() ([]net.Addr, error)) (addresses []string) {
	all, err := interfaces()
	if err != nil {
		return nil // what the host took is a way in any case
	}
	for _, a := range all {
		prefix, err := netip.ParsePrefix(a.String())
		if ip := prefix.Addr().Unmap(); err == nil && ip.IsGlobalUnicast() && ip.String() != taken {
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
