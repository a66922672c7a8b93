package ep

import (
	"net"
	"strconv"
	"sync"
	"sync/atomic"

	"godat/ep/internal/life"
	"godat/ep/internal/line"
	"godat/evd"
)

// profile is what Query tells of an endpoint beyond its rules. The token's holder writes it under mu,
// and reads it without; everybody else reads it under mu.
type profile struct {
	box *line.Mailbox // immutable: it has the state

	mu            sync.Mutex
	conn          *evd.Dispatcher
	attr          Attr
	local, remote address
	target        target

	agreed atomic.Uint64 // see Reads
}

// localValid and remoteValid are the states in which the addresses of the connection have a meaning.
const (
	remoteValid = 1<<life.PassiveConnectionPending | 1<<life.ActiveConnectionPending | 1<<life.TentativeConnectionPending |
		1<<life.DisconnectPending | 1<<life.CompletionPending | 1<<life.Connected
	localValid = 1<<life.PassiveConnectionPending | 1<<life.ActiveConnectionPending |
		1<<life.DisconnectPending | 1<<life.CompletionPending | 1<<life.Connected
)

// address is a transport address, with its port split off as DAT has it.
type address struct {
	addr net.Addr
	qual uint64
}

// ownAddr is the address of the adapter's device. It implements [net.Addr].
type ownAddr struct{ provider, address string }

// Network is the provider's name.
func (a ownAddr) Network() string { return a.provider }

func (a ownAddr) String() string { return a.address }

// String is the address in the form of package net, empty if it is not known.
func (a address) String() string {
	if a.addr == nil {
		return ""
	}
	return a.addr.String()
}

func split(addr net.Addr) (a address) {
	if addr == nil {
		return a
	}
	a.addr = addr
	if _, port, err := net.SplitHostPort(addr.String()); err == nil {
		a.qual, _ = strconv.ParseUint(port, 10, 64)
	}
	return a
}

func (p *profile) setAddresses(local, remote net.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.local, p.remote = split(local), split(remote)
}

// peer returns the address and qualifier for another connection to the same peer.
func (p *profile) peer() (addr string, qual uint64, s life.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s = stateIn(p.box); s != life.Connected {
		return "", 0, s
	}
	if p.target.qual != 0 {
		return p.target.addr, p.target.qual, s
	}
	host, _, err := net.SplitHostPort(p.remote.addr.String())
	if err != nil {
		host = p.remote.addr.String()
	}
	return host, p.remote.qual, s
}

// target is the address that the endpoint was told to connect to; zero if it accepted.
type target struct {
	addr string
	qual uint64
}

// Network implements [net.Addr].
func (target) Network() string { return "dat" }

// String implements [net.Addr].
func (t target) String() string { return net.JoinHostPort(t.addr, strconv.FormatUint(t.qual, 10)) }

func (p *profile) setTarget(addr string, qual uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target{addr, qual}
	if qual != 0 {
		p.remote = address{p.target, qual} // until the device reports the peer's address
	}
}

// agree records what Reads returns.
func (p *profile) agree(in, out int) { p.agreed.Store(uint64(uint32(in))<<32 | uint64(uint32(out))) }

func (p *profile) set(conn *evd.Dispatcher, attr *Attr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attr, p.conn = *attr, conn
}
