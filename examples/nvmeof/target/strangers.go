package target

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// strangers are the connections whose hosts have not sent their Connect command. They have room
// of their own, so that they never take that of hosts, and when it is used up the oldest
// one gives way: silence keeps nobody out. The methods may be called from any goroutine.
type strangers struct {
	most, ofAddress int // immutable

	mu  sync.Mutex
	all []*queue // in the order in which they came
}

// errGaveWay is why a stranger's connection was broken off.
var errGaveWay = errors.New("no Connect command, and others want the place")

// init bounds the strangers: all hosts may connect at the same time, and so many controllers
// of an address as one host may have.
func (s *strangers) init(cfg *Config) {
	s.most = cfg.Controllers * (cfg.Queues + 1)
	s.ofAddress = min(cfg.HostControllers, cfg.Controllers) * (cfg.Queues + 1)
}

// enter adds a connection. If its address has too many, the oldest of them gives way; if there
// are too many in all, the oldest of the address that has the most.
func (s *strangers) enter(q *queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, q)
	if s.count(q.address) > s.ofAddress {
		s.evict(q.address)
	} else if len(s.all) > s.most {
		s.evict(s.greediest())
	}
}

// count is how many connections an address has.
func (s *strangers) count(address string) (n int) {
	for _, q := range s.all {
		if q.address == address {
			n++
		}
	}
	return n
}

// greediest is the address that has the most connections.
func (s *strangers) greediest() (address string) {
	counts := make(map[string]int)
	for _, q := range s.all {
		if counts[q.address]++; counts[q.address] > counts[address] {
			address = q.address
		}
	}
	return address
}

// evict ends the oldest connection of an address.
func (s *strangers) evict(address string) {
	i := slices.IndexFunc(s.all, func(q *queue) bool { return q.address == address })
	close(s.all[i].evicted)
	s.all = slices.Delete(s.all, i, i+1)
}

// leave takes a connection away that is connected or has ended. It returns false if that gave
// way before.
func (s *strangers) leave(q *queue) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.all, q)
	if i >= 0 {
		s.all = slices.Delete(s.all, i, i+1)
	}
	return i >= 0
}

// addressOf is what the bounds of an address count: an IP address, or an IPv6 network of 64
// bits, of which a host has as many addresses as it wants.
func addressOf(remote net.Addr) string {
	host, _, err := net.SplitHostPort(remote.String())
	if err != nil {
		return remote.String()
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	bits := 32
	if ip = ip.Unmap(); ip.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(ip.WithZone(""), bits).Masked().String()
}
