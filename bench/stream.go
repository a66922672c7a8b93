package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"godat/bench/host"
	dat "godat/runtime"
	"godat/runtime/stream"
)

const overLocalhost = "iwarp:127.0.0.1"

// streamRig is an adapter with a byte stream between two of its connections.
type streamRig struct {
	ia *dat.IA
	ln *stream.Listener
	// a and b are the two ends.
	a, b net.Conn
}

// newStreamRig connects a stream whose rings have so many bytes, over a provider.
func newStreamRig(provider string, params map[string]string, ring int) *streamRig {
	ctx, cfg := context.Background(), stream.Config{Ring: ring}
	r := &streamRig{ia: must(dat.Open(ctx, provider, dat.WithParams(params)))}
	r.ln = must(stream.Listen(ctx, r.ia, ":0", cfg))
	accepted := make(chan net.Conn)
	go func() { accepted <- must(r.ln.Accept()) }()
	r.a = must((&stream.Dialer{IA: r.ia, Config: cfg}).Dial("", r.ln.Addr().String()))
	r.b = <-accepted
	return r
}

func (r *streamRig) close() {
	closeAll(r.a, r.b)
	check(r.ln.Close())
	check(r.ia.Close())
}

// streams measures byte streams beside what a program would use in their place, and the
// least that such a stream can take: a net.Conn whose reader asks for what it reads, and with
// CRCs one whose ends compute them, too.
func streams(w io.Writer, c contest) {
	const size = 1 << 20
	conn, peer := tcpPair()
	defer closeAll(conn, peer)
	pipe, end := net.Pipe()
	defer closeAll(pipe, end)
	bulk := []contestant{ // the first three share a connection, because one may be quicker than another for as long as it lasts
		connBulk("net.Conn", conn, peer, size), connBulkAsked(connAsked, conn, peer, size, false), connBulkAsked(connSummed, conn, peer, size, true),
		connBulk("net.Pipe", pipe, end, size),
	}
	trips := append([]contestant{connPingPong("net.Conn", conn, peer, messageSize), connPingPong("net.Pipe", pipe, end, messageSize)}, bareTrips()...)
	for _, way := range []struct {
		what, provider string
		params         map[string]string
	}{
		{"iwarp", overLocalhost, nil},
		{"iwarp without CRCs", overLocalhost, map[string]string{"crc": "false"}},
		{"loop", "loop", nil},
	} {
		for _, ring := range []int{64 << 10, 256 << 10, 1 << 20} {
			r := newStreamRig(way.provider, way.params, ring)
			defer r.close()
			name := fmt.Sprintf("stream over %s, ring of %d KiB", way.what, ring>>10)
			bulk = append(bulk, connBulk(name, r.a, r.b, size))
			trips = append(trips, connPingPong(name, r.a, r.b, messageSize))
		}
	}
	show(w, fmt.Sprintf("1 MiB written and read, GOMAXPROCS=%d", c.procs), c.run(bulk...), "net.Conn", connAsked, connSummed, "net.Pipe")
	show(w, fmt.Sprintf("Round trip of %d bytes, GOMAXPROCS=%d", messageSize, c.procs), c.run(trips...), "net.Conn", "net.Pipe")
	printWork(w, c, bulk)
}

// printWork prints what carrying 1 MiB takes: system calls that read or write, as the
// system has counted them, and copies inside the process, as the code makes them.
func printWork(w io.Writer, c contest, list []contestant) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.procs))
	const n = 50
	t := newTable(w, fmt.Sprintf("What 1 MiB takes, GOMAXPROCS=%d", c.procs))
	t.AppendHeader(table.Row{"", "system calls", "copies"})
	for _, x := range list {
		before, _ := host.SystemCalls()
		x.run(n)
		after, known := host.SystemCalls()
		calls := "?"
		if known {
			calls = fmt.Sprintf("%.1f", float64(after-before)/n)
		}
		t.AppendRow(table.Row{x.name, calls, copies(x.name)})
	}
	t.Render()
	fmt.Fprintln(w)
}

// copies are those of a Write and a Read that meet, without the system's.
func copies(name string) string {
	switch {
	case strings.HasPrefix(name, "stream over loop"):
		return "1: the RDMA write"
	case name == "net.Pipe":
		return "1"
	default:
		return "0"
	}
}

func closeAll(conns ...net.Conn) {
	for _, c := range conns {
		check(c.Close())
	}
}
