//go:build guest

package main

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"godat/ep"
	"godat/evd"
	"godat/hw"
	"godat/hw/event"
	_ "godat/hw/ibv"
	"godat/mem"
	dat "godat/runtime"
)

// These run in the guest, on the verbs device that it was booted with, between two
// adapters, as if they were in two processes.

// onVerbs are ways to take events.
var onVerbs = []struct {
	name   string
	events evd.Config
	next   func(*evd.Dispatcher) func() event.Event
}{
	{"channel", evd.Config{Mode: evd.ModeChannel}, receiving},
	{"wait", evd.Config{}, waiting},
	{"poll", evd.Config{}, dequeuing},
}

func waiting(d *evd.Dispatcher) func() event.Event {
	return func() event.Event {
		ev, _, err := d.Wait(context.Background(), 1)
		check(err)
		return ev
	}
}

// verbsEnd is an adapter with one endpoint.
type verbsEnd struct {
	ia     *dat.IA
	ep     *ep.Endpoint
	mem    *mem.LMR
	events *evd.Dispatcher
	conn   *evd.Dispatcher
}

func newVerbsEnd(tb testing.TB, cfg evd.Config, options ...dat.Option) *verbsEnd {
	tb.Helper()
	device := os.Getenv("GODAT_GUEST_DEVICE")
	require.NotEmpty(tb, device, "this runs in the guest: see hw/ibv/test-guest.sh")
	e := &verbsEnd{ia: must(dat.Open(context.Background(), "ibv:"+device, options...))}
	pz := must(e.ia.NewPZ())
	e.mem = must(pz.Alloc(4096, hw.AllPrivileges))
	e.conn = must(e.ia.NewDispatcher(evd.Config{QLen: 16}))
	cfg.QLen = 128
	e.events = must(e.ia.NewDispatcher(cfg))
	attr := &ep.Attr{MaxRecvDTOs: 16, MaxRequestDTOs: 64}
	e.ep = must(e.ia.NewEndpoint(ep.Config{PZ: pz, Recv: e.events, Request: e.events, Conn: e.conn, Attr: attr}))
	return e
}

func newVerbsEnds(tb testing.TB, cfg evd.Config) (a, b *verbsEnd) {
	tb.Helper()
	a, b = newVerbsEnd(tb, cfg), newVerbsEnd(tb, cfg)
	a.connect(tb, b)
	return a, b
}

func (a *verbsEnd) connect(tb testing.TB, b *verbsEnd) {
	tb.Helper()
	psp := must(b.ia.NewPSP(ep.PSPConfig{Dispatcher: b.conn}))
	check(a.ep.Connect(ep.ConnectConfig{Addr: b.ia.Attr().Address, Qual: psp.Qual()}))
	check(ep.RequestOf(waiting(b.conn)()).Accept(b.ep, nil))
	for _, e := range []*verbsEnd{a, b} {
		require.Equal(tb, event.Established, waiting(e.conn)().Number)
	}
}

// trips makes n round trips, and returns how long each took.
func (a *verbsEnd) trips(b *verbsEnd, n int, next func(*evd.Dispatcher) func() event.Event) []time.Duration {
	segA, segB := a.mem.Segment(0, messageSize), b.mem.Segment(0, messageSize)
	check(b.ep.PostRecv(1, 0, segB))
	check(a.ep.PostRecv(1, 0, segA))
	done := make(chan struct{})
	go func() {
		defer close(done)
		echo(b.ep, segB, next(b.events), n, false)
	}()
	took := make([]time.Duration, 0, n)
	last, answer := time.Now(), next(a.events)
	echo(a.ep, segA, func() event.Event {
		ev, now := answer(), time.Now()
		took = append(took, now.Sub(last))
		last = now
		return ev
	}, n, true)
	<-done
	return took
}

func TestIBVRoundTrips(t *testing.T) {
	for _, c := range onVerbs {
		t.Run(c.name, func(t *testing.T) {
			a, b := newVerbsEnds(t, c.events)
			copy(a.mem.Bytes(), "there and back")
			a.trips(b, 200, c.next)
			require.Equal(t, "there and back", string(b.mem.Bytes()[:14]))
			a.trips(b, 50, c.next) // a consumer that stopped polling goes on
			require.NoError(t, a.ep.Disconnect(ep.Graceful))
			for _, e := range []*verbsEnd{a, b} {
				require.Equal(t, event.Disconnected, waiting(e.conn)().Number)
			}
			require.NoError(t, a.ia.Close())
			require.NoError(t, b.ia.Close())
		})
	}
}

// BenchmarkIBVRoundTrip is the median of half a round trip of 64 bytes, as programs see
// it.
func BenchmarkIBVRoundTrip(b *testing.B) {
	for _, c := range onVerbs {
		b.Run("delivery="+c.name, func(b *testing.B) {
			from, to := newVerbsEnds(b, c.events)
			from.trips(to, 16, c.next)
			b.ResetTimer()
			took := from.trips(to, b.N, c.next)
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000/2, "µs/half")
			check(from.ia.Close())
			check(to.ia.Close())
		})
	}
}

// BenchmarkIBVWrites keeps 32 writes of 4 KiB outstanding, whose completions the consumer
// polls from the device. BenchmarkWrites of hw/ibv is the same without the library.
func BenchmarkIBVWrites(b *testing.B) {
	const size, most = 4 << 10, 32
	from, to := newVerbsEnds(b, evd.Config{})
	local, remote := from.mem.Segment(0, size), to.mem.Remote(0, size)
	buf := make([]event.Event, most)
	b.SetBytes(size)
	b.ResetTimer()
	out := 0
	for range b.N {
		for out == most {
			out -= taken(from.events, buf)
		}
		check(from.ep.PostRDMAWrite(1, 0, remote, local))
		out++
	}
	for out > 0 {
		out -= taken(from.events, buf)
	}
	b.StopTimer()
	check(from.ia.Close())
	check(to.ia.Close())
}

// taken dequeues what has completed, and returns how much.
func taken(d *evd.Dispatcher, buf []event.Event) int {
	n := must(d.Dequeue(buf))
	for i := range buf[:n] {
		check(buf[i].Status.Err())
	}
	return n
}
