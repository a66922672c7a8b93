package iwarp

import (
	"container/list"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"godat/hw"
)

// startups holds a listener's connections whose request has not come. Their number is
// bounded, in all and per address: beyond that the oldest gives way to a new one. So
// strangers that connect and send nothing keep no other peer out, and take a bounded
// amount of memory.
type startups struct {
	// Immutable.
	most, mostIP int
	limit        time.Duration // the time that each may take
	onDrop       func(*hw.Cause)
	ended        chan struct{} // of length 1; sent to when a start-up ends

	mu     sync.Mutex
	closed bool
	byAge  list.List         // of *startup, the oldest first
	peers  map[string]int    // number of start-ups per host
	counts hw.ListenerCounts // but for HalfOpen
	told   map[string]bool   // what peers spoke that was reported
}

// startup is one connection whose request has not come.
type startup struct {
	conn  net.Conn
	host  string // the peer's, empty if it has none
	since time.Time
	due   time.Time     // the deadline of its request
	place *list.Element // in byAge; nil when it has ended, or has given way
}

// headStart is how long a start-up does not have to give way: on a busy host, a peer that
// has just connected may not have run yet to send its request.
const headStart = 100 * time.Millisecond

func newStartups(set *settings, cfg *hw.ListenConfig) *startups {
	u := &startups{
		limit: set.mpa, onDrop: cfg.OnDrop,
		ended: make(chan struct{}, 1), peers: make(map[string]int), told: make(map[string]bool),
	}
	if u.onDrop == nil {
		u.onDrop = func(*hw.Cause) {}
	}
	u.most, u.mostIP = set.startupsOf(cfg.Backlog)
	return u
}

// enter makes a start-up of a connection and counts it. If another start-up must give way
// and can't yet, enter returns no start-up, but how long to wait. It returns neither if
// the listener is closed.
func (u *startups) enter(conn net.Conn) (s *startup, wait time.Duration) {
	s, old, wait := u.place(conn)
	if old != nil {
		u.dropped(old)
	}
	return s, wait
}

// place is enter without the report of the start-up that gave way, old.
func (u *startups) place(conn net.Conn) (s, old *startup, wait time.Duration) {
	host, now := peerOf(conn), time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return nil, nil, 0
	}
	if u.byAge.Len() >= u.most || host != "" && u.peers[host] >= u.mostIP {
		if old = u.silent(host); old == nil {
			return nil, nil, headStart
		}
		if wait = headStart - now.Sub(old.since); wait > 0 {
			return nil, nil, wait
		}
		u.giveUp(old)
		u.counts.GaveWay++
	}
	s = &startup{conn: conn, host: host, since: now, due: now.Add(u.limit)}
	s.place = u.byAge.PushBack(s)
	u.peers[host]++
	_ = conn.SetDeadline(s.due) // close sets its own deadline, under the lock too
	return s, old, 0
}

// again gives a start-up whose deadline was seen late its time again, and reports whether it did.
func (u *startups) again(s *startup) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if u.closed || s.place == nil || !isLate(now.Sub(s.due), u.limit) {
		return false
	}
	s.due = now.Add(u.limit)
	_ = s.conn.SetDeadline(s.due)
	return true
}

// asking is the connection of a start-up whose request is read.
type asking struct {
	net.Conn // which may be traced
	startups *startups
	startup  *startup
}

// Read reads until the start-up's time is over.
func (a asking) Read(b []byte) (n int, err error) {
	for {
		if n, err = a.Conn.Read(b); n > 0 || !expired(err) || !a.startups.again(a.startup) {
			return n, err
		}
	}
}

// silent is the oldest start-up that may give way to a new one from host, or nil. It is of
// the same host if that one has its share already. A start-up with octets in its
// socket is not silent: the goroutine that reads them has only not run yet. The lock is
// held.
func (u *startups) silent(host string) *startup {
	same := host != "" && u.peers[host] >= u.mostIP
	for e := u.byAge.Front(); e != nil; e = e.Next() {
		s := e.Value.(*startup)
		if same && s.host != host || unread(s.conn) {
			continue
		}
		return s
	}
	return nil
}

// giveUp interrupts a start-up's goroutine, and counts the start-up out. The lock is held.
func (u *startups) giveUp(s *startup) {
	_ = s.conn.SetDeadline(past)
	u.remove(s)
}

// dropped reports a start-up that gave way to another. No lock is held: the program's function
// may ask for the counts.
func (u *startups) dropped(s *startup) {
	u.onDrop(&hw.Cause{
		Layer: hw.LayerMPA, Local: s.conn.LocalAddr(), Remote: s.conn.RemoteAddr(),
		Text: fmt.Sprintf("a connection without a request gave way to a newer one: iwarp's parameters halfopen and halfopenip allow %d at a time, %d per address", u.most, u.mostIP),
	})
}

// remove counts a start-up out, once. The lock is held.
func (u *startups) remove(s *startup) {
	if s.place == nil {
		return
	}
	u.byAge.Remove(s.place)
	s.place = nil
	if u.peers[s.host]--; u.peers[s.host] == 0 {
		delete(u.peers, s.host)
	}
}

// end counts a start-up out: its request has come, or its connection has failed.
func (u *startups) end(s *startup, asked bool) {
	u.mu.Lock()
	if !asked && s.place != nil { // it has not given way
		u.counts.Silent++
	}
	u.remove(s)
	u.mu.Unlock()
	select {
	case u.ended <- struct{}{}:
	default:
	}
}

// foreign counts a peer that spoke another protocol, and reports each protocol once. It is called
// before end.
func (u *startups) foreign(s *startup, spoke string) {
	if u.isNews(s, spoke) { // no lock is held, as in dropped
		u.onDrop(&hw.Cause{Layer: hw.LayerMPA, Local: s.conn.LocalAddr(), Remote: s.conn.RemoteAddr(), Text: spoke})
	}
}

// isNews counts a peer that spoke another protocol, and reports whether it is the first that
// spoke it.
func (u *startups) isNews(s *startup, spoke string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if s.place == nil || u.closed {
		return false
	}
	u.counts.Foreign++
	if u.counts.Spoke != spoke {
		u.counts.Spoke, u.counts.Alike = spoke, 0
	}
	u.counts.Alike++
	u.counts.Stranger = s.conn.RemoteAddr().String()
	news := !u.told[spoke]
	u.told[spoke] = true
	return news
}

// refused counts a peer for which there was no descriptor.
func (u *startups) refused() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.counts.Descriptors++
}

// now returns the counts of this moment.
func (u *startups) now() hw.ListenerCounts {
	u.mu.Lock()
	defer u.mu.Unlock()
	c := u.counts
	c.HalfOpen = u.byAge.Len()
	return c
}

// close gives all start-ups up, and reports whether this was the first call.
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

// peerOf is the host of a connection's peer, or empty if its address has none. For an IPv6 address
// it is the network of 64 bits, because a single host may use all addresses in it. The network of a
// program's own may have names in place of addresses.
func peerOf(conn net.Conn) string {
	a := conn.RemoteAddr()
	if ip := addrPort(a).Addr(); ip.Is6() {
		return netip.PrefixFrom(ip, 64).Masked().Addr().String()
	} else if ip.IsValid() {
		return ip.String()
	}
	host, _ := hostPort(a)
	return host
}
