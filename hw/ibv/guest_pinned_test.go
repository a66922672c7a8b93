//go:build guest

package ibv

import (
	"math"
	goruntime "runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"godat/hw"
	dat "godat/runtime"
)

// pinnedPeriod lies between two completions.
const pinnedPeriod = 2 * time.Millisecond

// stamped is a device that notes when a poll last found something.
type stamped struct {
	hw.Device
	hw.Polled
	at *atomic.Int64
}

func (d stamped) Poll(wcs []hw.WC) int {
	n := d.Polled.Poll(wcs)
	if n > 0 {
		d.at.Store(time.Now().UnixNano())
	}
	return n
}

// stamping opens such devices.
type stamping struct {
	hw.Provider
	at *atomic.Int64
}

func (p stamping) Open(cfg hw.OpenConfig) (hw.Device, error) {
	dev, err := p.Provider.Open(cfg)
	if err != nil {
		return nil, err
	}
	return stamped{dev, dev.(hw.Polled), p.at}, nil
}

// BenchmarkPinned is how long after a poll found a completion the goroutine runs that
// waits for it on a channel, when they come far apart: runtime's benchmark of that
// name, over a device.
//
//	naive     a locked, spinning thread sends on the channel itself
//	unlocked  the same on no thread of its own, yielding between polls
//	pinned    the runtime: poller, ring, feeder, dispatcher's channel
func BenchmarkPinned(b *testing.B) {
	b.Run("path=naive", func(b *testing.B) { benchSender(b, goruntime.LockOSThread, func() {}) })
	b.Run("path=unlocked", func(b *testing.B) { benchSender(b, func() {}, goruntime.Gosched) })
	b.Run("path=pinned", benchPoller)
}

func benchSender(b *testing.B, begin, between func()) {
	r := newBenchmark(b)
	e := r.ends[0]
	near, far := e.memory(latencySize, hw.LocalRead), r.ends[1].memory(latencySize, hw.RemoteWrite)
	wr := hw.SendWR{
		ID: 1, Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{near.sge(0, latencySize)},
		RKey: far.RKey(), RemoteAddr: far.addr(),
	}
	ch := make(chan int64, 16)
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		begin()
		var wcs [16]hw.WC
		for !stop.Load() {
			if e.poll.Poll(wcs[:]) > 0 {
				ch <- time.Now().UnixNano()
			}
			between()
		}
	}()
	latencies(b, func() { e.send(wr) }, func() int64 { return <-ch })
	stop.Store(true)
	<-done
}

func benchPoller(b *testing.B) {
	var at atomic.Int64
	ia, err := dat.Open(b.Context(), "ibv:"+guestDevice(b), dat.WithProvider(stamping{New(), &at}),
		dat.WithPoller(dat.PollerConfig{SpinRounds: math.MaxInt}))
	must(err)
	pz, err := ia.NewPZ()
	must(err)
	mem, err := pz.Alloc(2*latencySize, dat.AllPrivileges)
	must(err)
	events, err := ia.NewDispatcher(dat.DispatcherConfig{Mode: dat.ModeChannel, QLen: 64})
	must(err)
	var conns [2]*dat.Dispatcher
	var eps [2]*dat.Endpoint
	for i := range eps {
		conns[i], err = ia.NewDispatcher(dat.DispatcherConfig{Mode: dat.ModeChannel, QLen: 16})
		must(err)
		eps[i], err = ia.NewEndpoint(dat.EndpointConfig{PZ: pz, Recv: events, Request: events, Conn: conns[i]})
		must(err)
	}
	psp, err := ia.Listen(dat.PSPConfig{Dispatcher: conns[1]})
	must(err)
	must(eps[0].Connect(dat.ConnectConfig{Addr: ia.Attr().Address, Qual: psp.Qual()}))
	must(dat.RequestOf(<-conns[1].C()).Accept(eps[1], nil))
	for _, c := range conns {
		if ev := <-c.C(); ev.Number != dat.Established {
			b.Fatal(ev)
		}
	}
	near, far := mem.Segment(0, latencySize), mem.Remote(latencySize, latencySize)
	latencies(b, func() { must(eps[0].PostRDMAWrite(1, dat.Default, far, near)) }, func() int64 {
		ev := <-events.C()
		must(ev.Status.Err())
		return at.Load()
	})
	must(ia.Close())
}

// latencies posts from a goroutine of its own, and takes the times at which what was
// posted was found done.
func latencies(b *testing.B, post func(), next func() int64) {
	b.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range b.N {
			time.Sleep(pinnedPeriod)
			post()
		}
	}()
	took := make([]int64, b.N)
	for i := range took {
		at := next()
		took[i] = time.Now().UnixNano() - at
	}
	<-done
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/1000, "µs/p50")
}
