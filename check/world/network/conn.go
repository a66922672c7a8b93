package network

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// stream is one direction of a connection.
type stream struct {
	n        *Network
	from, to string // hosts

	mu      sync.Mutex
	changed chan struct{} // closed, and made anew, whenever something below changes
	sent    [][]byte      // under way, in order; nil is the end
	last    time.Time     // when the last of them comes
	free    time.Time     // when the way has carried what was sent
	arrived []byte
	under   int // octets that were sent and not read
	ended   bool
	broken  bool
}

func newStream(n *Network, from, to string) *stream {
	return &stream{n: n, from: from, to: to, changed: make(chan struct{})}
}

// change wakes all who wait. The caller holds mu.
func (s *stream) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// send puts octets, or the end, on their way. The caller holds mu.
func (s *stream) send(octets []byte) {
	now := time.Now()
	latency, occupies := s.n.delay(s, len(octets))
	if s.free.Before(now) {
		s.free = now
	}
	s.free = s.free.Add(occupies)
	at := s.free.Add(latency)
	if !at.After(s.last) {
		at = s.last.Add(1) // in order
	}
	s.last = at
	s.under += len(octets)
	s.sent = append(s.sent, octets)
	time.AfterFunc(at.Sub(now), s.arrive)
}

// arrive brings the first octets under way, unless their way is held.
func (s *stream) arrive() {
	if s.n.holds(s) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	octets := s.sent[0]
	s.sent = s.sent[1:]
	s.arrived = append(s.arrived, octets...)
	s.ended = s.ended || octets == nil
	s.change()
}

// fail breaks the stream for both its ends.
func (s *stream) fail() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = true
	s.change()
}

// Conn is a net.Conn.
type Conn struct {
	n             *Network
	in, out       *stream
	local, remote addr
	read, write   deadline

	mu     sync.Mutex
	closed bool
	half   bool // the end was sent
}

// is reports whether the connection is one between two hosts.
func (c *Conn) is(a, b string) bool {
	return c.in.from == a && c.in.to == b || c.in.from == b && c.in.to == a
}

// reset ends the connection for both ends, as a RST does.
func (c *Conn) reset() {
	c.forget()
	c.in.fail()
	c.out.fail()
}

func (c *Conn) forget() {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	delete(c.n.conns, c)
}

func (c *Conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// await waits until a stream changes or a deadline may have passed. The caller holds the stream's mu, which
// await gives back meanwhile.
func (s *stream) await(d *deadline) {
	changed, moved := s.changed, d.wake()
	s.mu.Unlock()
	select {
	case <-changed:
	case <-moved:
	}
	s.mu.Lock()
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	s := c.in
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case c.isClosed():
			return 0, net.ErrClosed
		case s.broken:
			return 0, syscall.ECONNRESET
		case c.read.passed():
			return 0, os.ErrDeadlineExceeded
		case len(s.arrived) > 0:
			n := copy(b[:min(len(b), 1+s.n.intN(s.n.cfg.Piece))], s.arrived)
			s.arrived = s.arrived[n:]
			s.under -= n
			s.change()
			return n, nil
		case s.ended:
			return 0, io.EOF
		}
		s.await(&c.read)
	}
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (n int, err error) {
	s := c.out
	s.mu.Lock()
	defer s.mu.Unlock()
	for n < len(b) {
		switch {
		case c.isClosed():
			return n, net.ErrClosed
		case s.broken:
			return n, syscall.EPIPE
		case c.write.passed():
			return n, os.ErrDeadlineExceeded
		}
		room := min(s.n.cfg.Room-s.under, len(b)-n)
		if room <= 0 {
			s.await(&c.write)
			continue
		}
		piece := min(room, 1+s.n.intN(s.n.cfg.Piece))
		s.send(append([]byte(nil), b[n:n+piece]...))
		n += piece
	}
	return n, nil
}

// CloseWrite sends the end.
func (c *Conn) CloseWrite() error {
	c.mu.Lock()
	again := c.half
	c.half = true
	c.mu.Unlock()
	if again {
		return nil
	}
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	c.out.send(nil)
	return nil
}

// Close implements net.Conn. The peer gets what was sent, and then the end.
func (c *Conn) Close() error {
	c.mu.Lock()
	again := c.closed
	c.closed = true
	c.mu.Unlock()
	if again {
		return net.ErrClosed
	}
	c.forget()
	_ = c.CloseWrite()
	for _, s := range []*stream{c.in, c.out} {
		s.mu.Lock()
		s.change()
		s.mu.Unlock()
	}
	c.read.stop()
	c.write.stop()
	return nil
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	c.read.set(t)
	c.write.set(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.read.set(t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.write.set(t)
	return nil
}

// deadline is when a Read or a Write gives up.
type deadline struct {
	mu    sync.Mutex
	at    time.Time
	timer *time.Timer
	moved chan struct{} // closed when the deadline passes or is another one; nil while nobody waits
}

func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.at = t
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if !t.IsZero() {
		d.timer = time.AfterFunc(time.Until(t), d.signal)
	}
	d.signalLocked()
}

func (d *deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}

func (d *deadline) signal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.signalLocked()
}

func (d *deadline) signalLocked() {
	if d.moved != nil {
		close(d.moved)
		d.moved = nil
	}
}

func (d *deadline) wake() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.moved == nil {
		d.moved = make(chan struct{})
	}
	moved := d.moved
	if !d.at.IsZero() && !time.Now().Before(d.at) { // its timer may have fired before there was anybody to wake
		d.signalLocked()
	}
	return moved
}

func (d *deadline) passed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.at.IsZero() && !time.Now().Before(d.at)
}
