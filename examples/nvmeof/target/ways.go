package target

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"godat/examples/nvmeof/nvme"
)

// ways are those to the subsystem that a discovery controller tells its host.
type ways struct {
	entries    []nvme.DiscoveryEntry
	generation uint64 // of the changes that the target had seen
}

// announced is what discovery controllers tell, whichever address a host took.
type announced struct {
	mu         sync.Mutex
	addresses  []string
	generation uint64 // counts the changes; it begins with the time, so that a start is one, too
}

// look finds the ways there are now for the host of a queue.
func (t *Target) look(q *queue) ways {
	generation := t.announce()
	return ways{t.waysFrom(q.from, q.local), generation}
}

// announce tells the hosts if the addresses of the subsystem are others than before, and returns their
// generation.
func (t *Target) announce() uint64 {
	a := &t.announced
	a.mu.Lock()
	defer a.mu.Unlock()
	var now []string
	for _, l := range t.listeners {
		now = append(now, l.Addr())
		if l.everywhere {
			now = append(now, globals(t.interfaces)...)
		}
	}
	now = append(now, *t.elsewhere.Load()...)
	switch {
	case a.generation == 0:
		a.generation, a.addresses = uint64(time.Now().Unix()), now
	case !slices.Equal(a.addresses, now):
		a.generation++
		a.addresses = now
		t.controllers.waysChanged()
	}
	return a.generation
}

// SetElsewhere says at which addresses, host:port, other targets serve the same subsystem, in
// place of what it said before. The discovery log has them behind the addresses of this target, so that a
// host finds all of them at one. It may be called at any time, and hosts that stay connected to discovery
// are told of a change.
func (t *Target) SetElsewhere(addrs ...string) error {
	for _, addr := range addrs {
		if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
			return fmt.Errorf("target: %q is no address, as 10.0.0.1:4420 is one", addr)
		}
	}
	addrs = slices.Clone(addrs)
	t.announce() // what there was, for who looks first now
	t.elsewhere.Store(&addrs)
	t.announce()
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
