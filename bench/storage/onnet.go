package storage

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"godat/bench/ends"
	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/plain"
	"godat/hw/iwarp/wire"
)

// netServer serves the store over a net.Conn. A stranger who dials its port does not take the client's place.
type netServer struct {
	ln     net.Listener
	memory []byte
	wait   func()

	mu      sync.Mutex
	servers []*plain.Server
}

func listenNet(memory []byte) (*netServer, error) {
	ln, err := ends.Listen()
	if err != nil {
		return nil, err
	}
	s := &netServer{ln: ln, memory: memory}
	s.wait = ends.Each(ln, s.serve)
	return s, nil
}

func (s *netServer) serve(conn net.Conn) {
	server := plain.NewServer(conn, s.memory, mostDepth, wire.UpdateCRC)
	s.mu.Lock()
	s.servers = append(s.servers, server)
	s.mu.Unlock()
	_ = server.Run() // its client sees the connection end
}

func (s *netServer) served() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.servers {
		n += server.Served()
	}
	return n
}

func (s *netServer) close() error {
	err := s.ln.Close()
	s.wait()
	return err
}

// onConn is a client over a net.Conn: one goroutine begins commands, and another takes their
// completions; of a closed load one does both.
type onConn struct {
	*plain.Client
	conn net.Conn
}

func dialNet(addr string, depth int) (client, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &onConn{plain.NewClient(conn, depth, wire.UpdateCRC), conn}, nil
}

func (c *onConn) close() error { return c.Close() }

func (c *onConn) idle(until time.Time) error {
	if err := c.conn.SetReadDeadline(until); err != nil {
		return err
	}
	err := c.Receive(func(int) {})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return errors.Join(err, c.conn.SetReadDeadline(time.Time{}))
}

func (c *onConn) start(b *book, slot int) {
	block := b.begin(slot)
	b.expect(slot, block, c.Data(slot))
	op := nvme.IORead
	if b.Write {
		op = nvme.IOWrite
	}
	c.Begin(slot, op, int(block))
}

func (c *onConn) run(b *book) (pacing time.Duration, err error) {
	if b.closed() {
		return 0, c.runClosed(b)
	}
	p := startPacer(b.base, b.period, b.total)
	defer func() { pacing = p.end() }()
	t := &taker{c: c, b: b, free: make(chan int, b.Depth), done: make(chan struct{})}
	for i := range b.Depth {
		t.free <- i
	}
	go t.run()
	err = c.offer(b, t, p.ticks)
	for range b.Depth { // until all are done
		if err == nil {
			_, err = t.slot()
		}
	}
	_ = c.conn.SetReadDeadline(time.Now()) // ends the taker
	<-t.done
	if err == nil && !errors.Is(t.err, os.ErrDeadlineExceeded) {
		err = t.err
	}
	return 0, errors.Join(err, c.conn.SetReadDeadline(time.Time{}))
}

// offer begins the commands of an open load.
func (c *onConn) offer(b *book, t *taker, ticks <-chan struct{}) error {
	for !b.over() {
		for b.ready() {
			if len(t.free) == 0 { // those that were begun must go out before one comes back
				if err := c.Flush(); err != nil {
					return err
				}
			}
			slot, err := t.slot()
			if err != nil {
				return err
			}
			c.start(b, slot)
		}
		if err := c.Flush(); err != nil {
			return err
		}
		if !b.over() && !b.ready() {
			<-ticks
		}
	}
	return nil
}

// taker takes the completions of an open load.
type taker struct {
	c    *onConn
	b    *book
	free chan int      // slots
	done chan struct{} // closed when it has ended, by err
	err  error
}

// slot waits for a slot that is free.
func (t *taker) slot() (int, error) {
	select {
	case slot := <-t.free:
		return slot, nil
	case <-t.done:
		return 0, t.err
	}
}

func (t *taker) run() {
	defer close(t.done)
	for t.err == nil {
		var failed error
		err := t.c.Receive(func(slot int) {
			failed = errors.Join(failed, t.b.finish(slot, t.c.Data(slot), nil))
			t.free <- slot
		})
		t.err = errors.Join(err, failed)
	}
}

// runClosed keeps a command under way in each slot.
func (c *onConn) runClosed(b *book) error {
	for i := range b.Depth {
		c.start(b, i)
	}
	for under := b.Depth; under > 0; {
		if err := c.Flush(); err != nil {
			return err
		}
		var failed error
		err := c.Receive(func(slot int) {
			failed = errors.Join(failed, b.finish(slot, c.Data(slot), nil))
			if b.over() {
				under--
			} else {
				c.start(b, slot)
			}
		})
		if err = errors.Join(err, failed); err != nil {
			return err
		}
	}
	return nil
}
