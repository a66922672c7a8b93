package iwarp

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"time"
)

// startups are a listener's connections whose request has not come. Of those that a
// peer says nothing on, there are at most so many in all and per address: beyond that
// the oldest gives way to a new one. So strangers who connect and are silent keep
// nobody out, and hold only so much.
type startups struct {
	// Immutable.
	most, mostIP int
	limit        time.Duration // that each may take
	left         chan struct{} // holds one when a start-up has left

	mu     sync.Mutex
	closed bool
	byAge  list.List          // of *startup, the oldest first
	peers  map[netip.Addr]int // how many of them per address
}

// startup is one of them.
type startup struct {
	conn  net.Conn
	ip    netip.Addr
	since time.Time
	place *list.Element // nil when it has left, or has given way
}

// hearing is how long a start-up is left in peace: its request may be there, and the
// goroutine that reads it may not have run yet.
const hearing = 20 * time.Millisecond

func newStartups(set *settings) *startups {
	return &startups{
		most: set.halfOpen, mostIP: set.halfOpenIP, limit: set.mpa,
		left: make(chan struct{}, 1), peers: make(map[netip.Addr]int),
	}
}

// enter counts a connection in. If another has to give way and has not been heard
// for long enough, it says how long that takes. Neither means that the listener is
// closed.
func (u *startups) enter(conn net.Conn) (s *startup, wait time.Duration) {
	ip, now := peerOf(conn), time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil, 0
	}
	if old := u.oldest(ip); old != nil {
		if wait = hearing - now.Sub(old.since); wait > 0 {
			return nil, wait
		}
		u.giveUp(old)
	}
	s = &startup{conn: conn, ip: ip, since: now}
	s.place = u.byAge.PushBack(s)
	u.peers[ip]++
	_ = conn.SetDeadline(now.Add(u.limit)) // close, which sets its own, comes before or after all this
	return s, 0
}

// oldest is the start-up that has to give way to another one of ip, if one has to.
// The lock is held.
func (u *startups) oldest(ip netip.Addr) *startup {
	e := u.byAge.Front()
	if ip.IsValid() && u.peers[ip] >= u.mostIP {
		for e.Value.(*startup).ip != ip {
			e = e.Next()
		}
	} else if u.byAge.Len() < u.most {
		return nil
	}
	return e.Value.(*startup)
}

// giveUp has the start-up's goroutine end. The lock is held.
func (u *startups) giveUp(s *startup) {
	_ = s.conn.SetDeadline(past)
	u.remove(s)
}

// remove counts a start-up out, once. The lock is held.
func (u *startups) remove(s *startup) {
	if s.place == nil {
		return
	}
	u.byAge.Remove(s.place)
	s.place = nil
	if u.peers[s.ip]--; u.peers[s.ip] == 0 {
		delete(u.peers, s.ip)
	}
}

// leave counts a start-up out whose request has come, or will not.
func (u *startups) leave(s *startup) {
	u.mu.Lock()
	u.remove(s)
	u.mu.Unlock()
	select {
	case u.left <- struct{}{}:
	default:
	}
}

// close gives all of them up, and reports whether it was the first to.
func (u *startups) close() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return false
	}
	u.closed = true
	for e := u.byAge.Front(); e != nil; e = u.byAge.Front() {
		u.giveUp(e.Value.(*startup))
	}
	return true
}

// peerOf is the address of a connection's peer, if it has one: of IPv6 the network,
// whose 64 bits of addresses are a single host's to choose from.
func peerOf(conn net.Conn) netip.Addr {
	a := conn.RemoteAddr()
	if a == nil {
		return netip.Addr{}
	}
	ap, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	ip := ap.Addr().Unmap()
	if ip.Is6() {
		ip = netip.PrefixFrom(ip, 64).Masked().Addr()
	}
	return ip
}
