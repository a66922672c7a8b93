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

// streams measures byte streams beside what a program would use in their place, and
// prints what they take.
func streams(w io.Writer, c contest) (list []target) {
	const size = 1 << 20
	conn, peer := tcpPair()
	defer closeAll(conn, peer)
	pipe, end := net.Pipe()
	defer closeAll(pipe, end)
	bulk := []contestant{ // the first three share a connection, because one may be quicker than another for as long as it lasts
		connBulk("net.Conn", conn, peer, size), connBulkAsked(connAsked, conn, peer, size, false), connBulkAsked(connSummed, conn, peer, size, true),
		connBulk("net.Pipe", pipe, end, size),
	}
	trips := []contestant{connPingPong("net.Conn", conn, peer, messageSize), connPingPong("net.Pipe", pipe, end, messageSize)}

	ways := []struct {
		what, provider, anchor string
		params                 map[string]string
		bytes, trip            float64 // the bounds: of the bytes, and of the time
		floor                  string  // does the least that such a stream can do; empty if none does
	}{
		{"iwarp", "iwarp:127.0.0.1", "net.Conn", nil, 0.9, 1.5, connSummed},
		{"iwarp without CRCs", "iwarp:127.0.0.1", "net.Conn", map[string]string{"crc": "false"}, 0.9, 1.5, connAsked},
		{"loop", "loop", "net.Pipe", nil, 0.7, 0.5, ""},
	}
	rings := []int{64 << 10, 256 << 10, 1 << 20}
	name := func(what string, ring int) string {
		return fmt.Sprintf("stream over %s, ring of %d KiB", what, ring>>10)
	}
	for _, way := range ways {
		for _, ring := range rings {
			r := newStreamRig(way.provider, way.params, ring)
			defer r.close()
			bulk = append(bulk, connBulk(name(way.what, ring), r.a, r.b, size))
			trips = append(trips, connPingPong(name(way.what, ring), r.a, r.b, messageSize))
		}
	}
	carried, there := c.run(bulk...), c.run(append(trips, bareTrips()...)...)
	printWork(w, c, bulk)
	printTrips(w, c, there, "net.Pipe")
	for _, floor := range []string{connAsked, connSummed} {
		list = append(list, target{"bytes", floor + " / net.Conn", carried.speed(floor, "net.Conn"), true, none})
	}
	for _, way := range ways {
		for _, ring := range rings {
			what := name(way.what, ring)
			if way.floor != "" {
				list = append(list, target{"bytes", what + " / " + way.floor, carried.speed(what, way.floor), true, none})
			}
			list = append(list,
				target{"bytes", what + " / " + way.anchor, carried.speed(what, way.anchor), true, way.bytes},
				target{"round trip", what + " / " + way.anchor, there.ratio(what, way.anchor), false, way.trip},
			)
		}
	}
	return list
}

// printWork prints what carrying 1 MiB takes: system calls that read or write, as the
// system has counted them, and copies inside the process, as the code makes them.
func printWork(w io.Writer, c contest, list []contestant) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.procs))
	const n = 50
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetTitle(fmt.Sprintf("1 MiB, GOMAXPROCS=%d", c.procs))
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
