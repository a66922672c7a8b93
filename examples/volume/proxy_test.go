package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/stretchr/testify/require"

	"godat/examples/volume/fault"
	"godat/examples/volume/raftlog"
	"godat/hw"
	"godat/hw/iwarp"
)

// throughProxy has, for a test process that is the program, the proxy's address, the node, and its
// directory.
const throughProxy = "VOLUME_TEST_PROXY"

// suffering is the provider of such a process.
const suffering = "suffering"

// suffer gives the process's disk what a test says, and its connections to other nodes a proxy.
func suffer(text string) {
	part := strings.SplitN(text, " ", 3)
	disk := fault.Disk(part[2])
	disks.open, disks.journal = disk.OpenStore, disk.OpenStaged
	disks.log = raftlog.Config{Files: fault.Files{FS: walfs.New(), Disk: disk}, Segment: 128 << 10}
	err := hw.Register(iwarp.New(iwarp.Config{Name: suffering, Dial: func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", part[0])
		if err != nil {
			return nil, err
		}
		_, err = fmt.Fprintf(conn, "%s %s\n", part[1], addr)
		return conn, err
	}}))
	if err != nil {
		panic(err)
	}
}

// proxy has all connections between nodes. A direction that is cut carries nothing; what was sent comes
// when it is mended, if the connection still exists then.
type proxy struct {
	*cluster
	listener net.Listener
	tasks    sync.WaitGroup
	beside   *proxy // of another volume, or nil

	mu        sync.Mutex
	mended    *sync.Cond
	cut       map[[2]int]bool
	exchanged map[int]bool // nodes in whose places the other volume's are
	strangers *strangers   // or nil
	conns     map[net.Conn][2]int
	closed    bool
}

func (c *cluster) newProxy() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(c, err)
	p := &proxy{cluster: c, listener: l, cut: make(map[[2]int]bool), exchanged: make(map[int]bool), conns: make(map[net.Conn][2]int)}
	p.mended = sync.NewCond(&p.mu)
	c.proxy = p
	p.tasks.Go(p.accept)
	c.Cleanup(p.end)
}

// name is what a node is told of the proxy.
func (p *proxy) name(id int) string {
	return fmt.Sprintf("%s %d %s", p.listener.Addr(), id, p.disk(id))
}

func (p *proxy) end() {
	require.NoError(p, p.listener.Close())
	p.mu.Lock()
	p.closed = true
	for conn := range p.conns {
		_ = conn.Close()
	}
	p.mended.Broadcast()
	p.mu.Unlock()
	p.tasks.Wait()
}

// set cuts the way from one node to another, or mends it.
func (p *proxy) set(from, to int, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut[[2]int{from, to}] = cut
	p.mended.Broadcast()
}

// reset ends all connections of a node.
func (p *proxy) reset(id int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn, nodes := range p.conns {
		if nodes[0] == id || nodes[1] == id {
			_ = conn.Close()
		}
	}
}

// exchange has the other volume's node in the place of one of this, or no more.
func (p *proxy) exchange(id int, yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.exchanged[id] = yes
}

// lets lets strangers hear and divert connections, or, if they are nil, no more.
func (p *proxy) lets(s *strangers) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.strangers = s
}

// way is where a connection to a node goes, and who hears it.
func (p *proxy) way(id int) (to string, heard io.Writer) {
	p.mu.Lock()
	s := p.strangers
	to, heard = p.peers[id-1], io.Discard
	if p.exchanged[id] {
		to = p.beside.peers[id-1]
	}
	p.mu.Unlock()
	if s != nil {
		to, heard = s.divert(to), s.tape()
	}
	return to, heard
}

// pass waits until the way from one node to another is whole.
func (p *proxy) pass(from, to int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.cut[[2]int{from, to}] && !p.closed {
		p.mended.Wait()
	}
}

// adopt takes a connection, unless the proxy ends.
func (p *proxy) adopt(conn net.Conn, from, to int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = conn.Close()
		return false
	}
	p.conns[conn] = [2]int{from, to}
	return true
}

func (p *proxy) lose(conn net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, conn)
	_ = conn.Close()
}

func (p *proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.tasks.Go(func() { p.connect(conn) })
	}
}

// connect connects a node to another one.
func (p *proxy) connect(near net.Conn) {
	if !p.adopt(near, 0, 0) {
		return
	}
	defer p.lose(near)
	from := bufio.NewReader(near)
	line, err := from.ReadString('\n')
	if err != nil {
		return
	}
	id, addr, _ := strings.Cut(strings.TrimSpace(line), " ")
	a, err := strconv.Atoi(id)
	b := 1 + slices.Index(p.peers, addr)
	if b == 0 && p.beside != nil { // the node has a directory of the other volume
		p = p.beside
		b = 1 + slices.Index(p.peers, addr)
		defer p.lose(near)
	}
	if err != nil || b == 0 {
		p.Errorf("a node dials %q", line)
		return
	}
	p.pass(a, b)
	p.pass(b, a)
	to, heard := p.way(b)
	far, err := net.Dial("tcp", to)
	if err != nil || !p.adopt(near, a, b) || !p.adopt(far, a, b) {
		return
	}
	defer p.lose(far)
	var back sync.WaitGroup
	back.Go(func() { p.pump(far, far, near, b, a) })
	p.pump(io.TeeReader(from, heard), near, far, a, b)
	back.Wait()
}

// pump carries what comes from one node to another, and that it ends.
func (p *proxy) pump(r io.Reader, in, out net.Conn, from, to int) {
	b := make([]byte, 64<<10)
	for {
		n, err := r.Read(b)
		p.pass(from, to)
		_, failed := out.Write(b[:n])
		switch {
		case failed == nil && err == nil:
		case failed == nil && errors.Is(err, io.EOF):
			_ = out.(*net.TCPConn).CloseWrite()
			return
		default:
			_, _ = in.Close(), out.Close()
			return
		}
	}
}
