package runtime

import (
	"net"
	"sync/atomic"

	"godat/ep"
)

// This file has what a connection is called.

// connIDs is the last id that a connection got.
var connIDs atomic.Uint64

type connAddrs struct{ local, remote net.Addr }

// ID is a number that no other connection of the process has or will have, from 1 on. So it
// can stand in a header or be the key of a map, and a connection that has ended is not taken
// for a later one. The peer has a number of its own for its end, and a program that reads
// an id from a peer looks whether it is one of the connections that this peer may name. It
// is 0 for nil.
func (c *Conn) ID() uint64 {
	if c == nil {
		return 0
	}
	return c.id
}

// LocalAddr is this end's address as the provider has it, such as a *net.TCPAddr of iwarp.
// A connection of [Listener.Dial] has it from [event.Established] on; before it is nil. The
// address stays when the connection ends.
func (c *Conn) LocalAddr() net.Addr { return c.findAddrs().local }

// RemoteAddr is the peer's address, as LocalAddr is this end's.
func (c *Conn) RemoteAddr() net.Addr { return c.findAddrs().remote }

// findAddrs asks the endpoint for the addresses if they are not known yet.
func (c *Conn) findAddrs() (e connAddrs) {
	if !c.isMade() {
		return e
	}
	if known := c.addrs.Load(); known != nil {
		return *known
	}
	p, err := c.Endpoint.Query()
	if err != nil || p.LocalAddr == nil || p.RemoteAddr == nil || p.State == ep.ActiveConnectionPending {
		return e // during an attempt the local address is still the adapter's
	}
	e = connAddrs{p.LocalAddr, p.RemoteAddr}
	c.addrs.Store(&e)
	return e
}
