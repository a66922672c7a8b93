// Package network is a network in memory: connections whose octets take time, come in pieces, wait for room,
// and are held up, slowed down or cut off, as a script or a seed says. It is for iwarp.Config, so a program's
// hosts have all of iWARP between them, and no socket.
package network

import (
	"context"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Config is what all ways have in common.
type Config struct {
	Latency time.Duration // of an octet, one way
	Jitter  time.Duration // what may be added to it; octets stay in order
	Room    int           // octets under way in one direction
	Piece   int           // the most octets that a read or a write moves
}

// Network is the hosts and the ways between them.
type Network struct {
	cfg Config

	mu    sync.Mutex
	draw  *rand.Rand
	ports int // that were given out
	hosts map[string]bool
	at    map[string]*Listener
	ways  map[[2]string]*way
	conns map[*Conn]struct{}
	Stats Stats
}

// Stats counts what happened.
type Stats struct{ Connections, Pieces, Octets, Resets, Holds int }

// way is what is true of all octets from one host to another, under Network.mu.
type way struct {
	held    bool
	waiting []*stream     // those whose octets are held
	each    time.Duration // how long each octet takes; 0 means no time
}

// New makes a network. All that it draws depends on the seed.
func New(seed uint64, cfg Config) *Network {
	return &Network{
		cfg: cfg, draw: rand.New(rand.NewPCG(seed, 1)),
		hosts: make(map[string]bool), at: make(map[string]*Listener), ways: make(map[[2]string]*way), conns: make(map[*Conn]struct{}),
	}
}

// intN draws from [0, n).
func (n *Network) intN(most int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.draw.IntN(most)
}

// way is the way from one host to another. The caller holds mu.
func (n *Network) way(from, to string) *way {
	w := n.ways[[2]string{from, to}]
	if w == nil {
		w = new(way)
		n.ways[[2]string{from, to}] = w
	}
	return w
}

// Hold holds all octets between two hosts up until Release.
func (n *Network) Hold(a, b string) {
	n.HoldOneWay(a, b)
	n.HoldOneWay(b, a)
}

// HoldOneWay holds all octets from one host to another up until Release.
func (n *Network) HoldOneWay(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.way(from, to).held = true
	n.Stats.Holds++
}

// Release lets what was held between two hosts go.
func (n *Network) Release(a, b string) {
	n.mu.Lock()
	var waiting []*stream
	for _, w := range []*way{n.way(a, b), n.way(b, a)} {
		waiting = append(waiting, w.waiting...)
		w.held, w.waiting = false, nil
	}
	n.mu.Unlock()
	for _, s := range waiting {
		s.arrive()
	}
}

// Slow lets so many octets a second pass between two hosts, each way; 0 means any number.
func (n *Network) Slow(a, b string, rate int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	each := time.Duration(0)
	if rate > 0 {
		each = time.Second / time.Duration(rate)
	}
	n.way(a, b).each, n.way(b, a).each = each, each
}

// Reset ends all connections between two hosts, and says so to both ends.
func (n *Network) Reset(a, b string) {
	n.mu.Lock()
	var all []*Conn
	for c := range n.conns {
		if c.is(a, b) {
			all = append(all, c)
		}
	}
	n.Stats.Resets += len(all)
	n.mu.Unlock()
	for _, c := range all {
		c.reset()
	}
}

// holds reports whether the next octets of a stream wait until their way is released.
func (n *Network) holds(s *stream) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.way(s.from, s.to)
	if w.held {
		w.waiting = append(w.waiting, s)
	}
	return w.held
}

// delay is how long a piece takes that is sent now, and how long it occupies its way.
func (n *Network) delay(s *stream, octets int) (latency, occupies time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Stats.Pieces++
	n.Stats.Octets += octets
	return n.cfg.Latency + time.Duration(n.draw.Int64N(int64(n.cfg.Jitter)+1)), time.Duration(octets) * n.way(s.from, s.to).each
}

// Host is a host of a network: its Dial and Listen are those of iwarp.Config.
type Host struct {
	n    *Network
	addr string
}

// Host is the host of an address.
func (n *Network) Host(addr string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[addr] = true
	return &Host{n, addr}
}

type addr string

func (addr) Network() string  { return "memory" }
func (a addr) String() string { return string(a) }

// Listener is a net.Listener.
type Listener struct {
	n       *Network
	address string
	queue   chan *Conn
	closed  chan struct{}
	once    sync.Once
}

const backlog = 16

// Listen listens at a port of the host; 0 means one that is free.
func (h *Host) Listen(address string) (net.Listener, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	if port == "0" {
		port = h.n.port()
	}
	address = net.JoinHostPort(h.addr, port)
	if h.n.at[address] != nil {
		return nil, syscall.EADDRINUSE
	}
	l := &Listener{n: h.n, address: address, queue: make(chan *Conn, backlog), closed: make(chan struct{})}
	h.n.at[address] = l
	return l, nil
}

// port is one that nobody had. The caller holds mu.
func (n *Network) port() string {
	n.ports++
	return strconv.Itoa(1024 + n.ports)
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.once.Do(func() {
		l.n.mu.Lock()
		delete(l.n.at, l.address)
		l.n.mu.Unlock()
		close(l.closed)
		for {
			select {
			case c := <-l.queue:
				c.reset()
			default:
				return
			}
		}
	})
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return addr(l.address) }

// Dial connects to an address of a host of the network.
func (h *Host) Dial(ctx context.Context, address string) (net.Conn, error) {
	n := h.n
	back, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(2 * n.cfg.Latency)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	n.mu.Lock()
	l, there := n.at[address], n.hosts[back]
	port := n.port()
	n.mu.Unlock()
	switch {
	case !there:
		return nil, syscall.EHOSTUNREACH
	case l == nil:
		return nil, syscall.ECONNREFUSED
	}
	out, in := newStream(n, h.addr, back), newStream(n, back, h.addr)
	dialer := &Conn{n: n, in: in, out: out, local: addr(net.JoinHostPort(h.addr, port)), remote: addr(address)}
	server := &Conn{n: n, in: out, out: in, local: dialer.remote, remote: dialer.local}
	select {
	case l.queue <- server:
	case <-l.closed:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	n.mu.Lock()
	n.conns[dialer] = struct{}{}
	n.Stats.Connections++
	n.mu.Unlock()
	return dialer, nil
}
