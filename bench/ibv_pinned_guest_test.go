//go:build guest

package main

import (
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"godat/hw"
	"godat/hw/ibv"
	dat "godat/runtime"
)

// stamping opens devices that note when a poll last found a completion.
type stamping struct {
	hw.Provider
	at *atomic.Int64
}

type stamped struct {
	hw.Device
	hw.Polled
	at *atomic.Int64
}

func (p stamping) Open(cfg hw.OpenConfig) (hw.Device, error) {
	dev, err := p.Provider.Open(cfg)
	if err != nil {
		return nil, err
	}
	return stamped{dev, dev.(hw.Polled), p.at}, nil
}

func (d stamped) Poll(wcs []hw.WC) int {
	n := d.Polled.Poll(wcs)
	if n > 0 {
		d.at.Store(time.Now().UnixNano())
	}
	return n
}

// BenchmarkIBVPinned measures the time from the poll that found a completion to the
// goroutine that waits for it on a channel, when completions come far apart. It is
// BenchmarkPinned of package polling, on a device.
//
//	naive     a locked, spinning thread polls and sends on the channel itself
//	unlocked  the same on no thread of its own, yielding between polls
//	pinned    the adapter's poller, which spins, and the dispatcher's channel
func BenchmarkIBVPinned(b *testing.B) {
	b.Run("path=naive", func(b *testing.B) { benchSender(b, runtime.LockOSThread, func() {}) })
	b.Run("path=unlocked", func(b *testing.B) { benchSender(b, func() {}, runtime.Gosched) })
	b.Run("path=pinned", benchPinned)
}

func benchSender(b *testing.B, begin, between func()) {
	var at atomic.Int64
	var stop atomic.Bool
	ch, done := make(chan int64, 16), make(chan struct{})
	run := func(events *dat.Dispatcher) {
		defer close(done)
		begin()
		buf := make([]dat.Event, 1)
		for !stop.Load() {
			if must(events.Dequeue(buf)) > 0 {
				check(buf[0].Status.Err())
				ch <- at.Load()
			}
			between()
		}
	}
	benchWrites(b, &at, 0, dat.DispatcherConfig{}, func(events *dat.Dispatcher) func() int64 {
		go run(events)
		return func() int64 { return <-ch }
	}, func() {
		stop.Store(true)
		<-done
	})
}

func benchPinned(b *testing.B) {
	var at atomic.Int64
	benchWrites(b, &at, math.MaxInt, dat.DispatcherConfig{Mode: dat.ModeChannel}, func(events *dat.Dispatcher) func() int64 {
		return func() int64 {
			ev := <-events.C()
			check(ev.Status.Err())
			return at.Load()
		}
	}, func() {})
}

// benchWrites posts writes at intervals, from a goroutine of its own. The function that
// begin returns waits for the next completion, and returns when a poll found it.
func benchWrites(b *testing.B, at *atomic.Int64, rounds int, cfg dat.DispatcherConfig,
	begin func(*dat.Dispatcher) func() int64, end func(),
) {
	b.Helper()
	const period = 2 * time.Millisecond
	from := newVerbsEnd(b, cfg, dat.WithPoller(dat.PollerConfig{SpinRounds: rounds}), dat.WithProvider(stamping{ibv.New(), at}))
	to := newVerbsEnd(b, cfg)
	from.connect(b, to)
	next := begin(from.events)
	posted := make(chan struct{})
	go func() {
		defer close(posted)
		for range b.N {
			time.Sleep(period)
			check(from.ep.PostRDMAWrite(1, dat.Default, to.mem.Remote(0, messageSize), from.mem.Segment(0, messageSize)))
		}
	}()
	took := make([]int64, b.N)
	for i := range took {
		found := next()
		took[i] = time.Now().UnixNano() - found
	}
	<-posted
	end()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/1000, "µs/p50")
	check(from.ia.Close())
	check(to.ia.Close())
}
