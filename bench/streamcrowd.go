package main

import (
	"context"
	"io"
	"net"
	"strconv"
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

func (c *streamCrowd) serve(n int, ready func(port uint64)) {
	ln := must(stream.Listen(context.Background(), c.ia, ":0", stream.Config{}))
	_, port, err := net.SplitHostPort(ln.Addr().String())
	check(err)
	ready(must(strconv.ParseUint(port, 10, 64)))
	var buf [messageSize]byte
	for range n {
		conn := must(ln.Accept())
		must(io.ReadFull(conn, buf[:]))
		must(conn.Write(buf[:]))
		c.add(conn)
	}
	check(ln.Close())
}

func (c *streamCrowd) visit(addr string, port uint64, n int) {
	d := stream.Dialer{IA: c.ia}
	at := net.JoinHostPort(addr, strconv.FormatUint(port, 10))
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
