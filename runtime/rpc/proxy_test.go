package rpc

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// way is what happens to a connection at an octet.
type way int

const (
	stalls  way = iota // the one direction
	freezes            // both directions
	ends               // as that of a process that is killed
	resets
	whole // nothing happens
)

// proxy stands between a client and its server, for one connection. It forwards so many octets of
// one direction, and then something happens to the connection.
type proxy struct {
	ln       net.Listener
	toServer bool // the direction whose octets are counted
	how      way

	reached chan struct{} // closed at the octet
	resume  chan struct{} // closed by goOn
	goOn    func()        // lets a connection that stalls go on
	running sync.WaitGroup

	mu        sync.Mutex
	left      int // octets before it happens
	forwarded int // octets of the direction
	socks     []net.Conn
	closed    bool
}

// newProxy makes a proxy before the server at an address.
func newProxy(t testing.TB, server string, toServer bool, how way, octets int) *proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{
		ln: ln, toServer: toServer, how: how, left: octets,
		reached: make(chan struct{}), resume: make(chan struct{}),
	}
	p.goOn = sync.OnceFunc(func() { close(p.resume) })
	p.running.Go(func() {
		client, err := ln.Accept()
		if err != nil || !assert.NoError(t, ln.Close()) { // the client may try again
			return
		}
		behind, err := net.Dial("tcp", server)
		if !assert.NoError(t, err) || !p.keep(client, behind) {
			return
		}
		p.running.Go(func() { p.forward(behind, client, toServer) })
		p.forward(client, behind, !toServer)
	})
	return p
}

func (p *proxy) addr() string { return p.ln.Addr().String() }

// keep keeps the sockets for close; false behind it.
func (p *proxy) keep(socks ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.socks = append(p.socks, socks...)
	if p.closed {
		p.closeSocks()
	}
	return !p.closed
}

func (p *proxy) closeSocks() {
	for _, c := range p.socks {
		_ = c.Close()
	}
}

// forward copies a direction, until one of its sockets ends.
func (p *proxy) forward(to, from net.Conn, counted bool) {
	defer func() { _ = to.(*net.TCPConn).CloseWrite() }()
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		now := n
		if counted {
			now = p.spend(n)
		} else if p.how == freezes {
			select {
			case <-p.reached:
				<-p.resume
			default:
			}
		}
		if _, err = to.Write(buf[:now]); err != nil {
			return
		}
		if now == n {
			continue
		}
		if !p.happen() {
			return
		}
		if _, err = to.Write(buf[now:n]); err != nil {
			return
		}
	}
}

// spend says how many of the next n octets pass before something happens.
func (p *proxy) spend(n int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := n
	if p.how != whole {
		now = min(n, p.left)
	}
	p.left -= now
	p.forwarded += now
	return now
}

// happen does it to the connection. It returns when the connection goes on, or false if it does not.
func (p *proxy) happen() bool {
	p.mu.Lock()
	p.left = 1 << 30
	if p.how == resets {
		for _, c := range p.socks {
			_ = c.(*net.TCPConn).SetLinger(0)
		}
	}
	if p.how == ends || p.how == resets {
		p.closeSocks()
	}
	p.mu.Unlock()
	close(p.reached)
	if p.how == ends || p.how == resets {
		return false
	}
	<-p.resume
	return true
}

// octets is how many octets of the direction have been forwarded.
func (p *proxy) octets() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forwarded
}

// close ends the connection and the proxy's goroutines.
func (p *proxy) close() {
	_ = p.ln.Close()
	p.mu.Lock()
	p.closed = true
	p.closeSocks()
	p.mu.Unlock()
	p.goOn()
	p.running.Wait()
}
