package day

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// link is the way of one client to the servers: so many bits a second, with pauses, and with
// connections that are lost.
type link struct {
	bits float64 // a second
	mu   sync.Mutex
	rng  *rand.Rand // mu guards it
}

// newLink draws a link of 200 kbit/s to 1 Gbit/s.
func newLink(rng *rand.Rand) *link {
	rates := [...]float64{200e3, 1e6, 10e6, 100e6, 1e9}
	return &link{bits: rates[rng.IntN(len(rates))], rng: rand.New(rand.NewPCG(rng.Uint64(), rng.Uint64()))}
}

// dial is for iwarp.Config.
func (l *link) dial(ctx context.Context, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &shaped{Conn: conn, link: l}, nil
}

// shaped is a connection over a link. What it writes takes the time that the link takes.
type shaped struct {
	net.Conn
	link *link
}

// Write writes a piece at a time.
func (c *shaped) Write(b []byte) (n int, err error) {
	const piece = 2 << 10
	for n < len(b) && err == nil {
		part := b[n:min(len(b), n+piece)]
		takes, lost := c.link.next(len(part))
		time.Sleep(takes)
		if lost {
			_ = c.Close()
		}
		var wrote int
		wrote, err = c.Conn.Write(part)
		n += wrote
	}
	return n, err
}

// next is how long the link takes for so many bytes, and whether it loses the connection before them.
func (l *link) next(size int) (takes time.Duration, lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	takes = time.Duration(float64(size) * 8 / l.bits * float64(time.Second))
	switch dice := l.rng.IntN(400); {
	case dice == 0:
		lost = true
	case dice < 4:
		takes += time.Duration(l.rng.IntN(int(200 * time.Millisecond)))
	}
	return takes, lost
}
