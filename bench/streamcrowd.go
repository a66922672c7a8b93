package main

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	dat "godat/runtime"
	"godat/runtime/stream"
)

// A streamCrowd is ends of byte streams.
type streamCrowd struct {
	ia     *dat.IA
	before usage

	mu    sync.Mutex
	conns []net.Conn
}

func newStreamCrowd(name string) *streamCrowd {
	return &streamCrowd{ia: must(dat.Open(context.Background(), name)), before: measure()}
}

func (c *streamCrowd) add(conn net.Conn) {
	c.mu.Lock()
	c.conns = append(c.conns, conn)
	c.mu.Unlock()
}

func (c *streamCrowd) serve(n int, ready func(port string)) {
	ln := must(stream.Listen(context.Background(), c.ia, ":0", stream.Config{}))
	_, port, err := net.SplitHostPort(ln.Addr().String())
	check(err)
	ready(port)
	var buf [messageSize]byte
	for range n {
		conn := must(ln.Accept())
		must(io.ReadFull(conn, buf[:]))
		must(conn.Write(buf[:]))
		c.add(conn)
	}
	check(ln.Close())
}

func (c *streamCrowd) visit(addr, port string, n int) {
	d := stream.Dialer{IA: c.ia}
	at := net.JoinHostPort(addr, port)
	var buf [messageSize]byte
	for range n {
		conn := must(d.Dial("", at))
		must(conn.Write(buf[:]))
		must(io.ReadFull(conn, buf[:]))
		c.add(conn)
	}
}

func (c *streamCrowd) rest(d time.Duration) idle { return rest(d, len(c.conns), c.before) }

func (c *streamCrowd) close() error { return c.ia.Close() }
