package polling

import (
	"math"
	goruntime "runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"godat/hw"
)

const (
	pinnedPeriod = 200 * time.Microsecond
	noBound      = math.MaxInt
)

// metronome is a polled device that has one completion every pinnedPeriod. The
// completion's id is the time at which Poll found it. It is never armed: its poller
// spins.
type metronome struct {
	next time.Time
	stop atomic.Bool
}

func (d *metronome) Poll(wcs []hw.WC) int {
	now := time.Now()
	if d.stop.Load() || now.Before(d.next) {
		return 0
	}
	d.next = now.Add(pinnedPeriod)
	wcs[0] = hw.WC{ID: uint64(now.UnixNano())}
	return 1
}

func (d *metronome) NewCQ(cfg hw.CQConfig) (hw.CQ, error) {
	return &polledCQ{dev: newPolled(), cfg: cfg}, nil
}
func (d *metronome) Arm() error  { return nil }
func (d *metronome) Wait() error { return nil }
func (d *metronome) Wake()       {}

// BenchmarkPinned is the time from a completion to the goroutine that waits for it on a
// channel, when completions come far apart.
//
//	naive     a locked, spinning thread sends on the channel itself
//	unlocked  the same on no thread of its own, yielding between polls
//	pinned    the engine's goroutine polls and delivers
func BenchmarkPinned(b *testing.B) {
	b.Run("path=naive", func(b *testing.B) { benchSender(b, goruntime.LockOSThread, func() {}) })
	b.Run("path=unlocked", func(b *testing.B) { benchSender(b, func() {}, goruntime.Gosched) })
	b.Run("path=pinned", benchPoller)
}

func benchSender(b *testing.B, begin, between func()) {
	dev := new(metronome)
	ch := make(chan uint64, 16)
	done := make(chan struct{})
	go func() {
		defer close(done)
		begin()
		var wcs [pollBatch]hw.WC
		for !dev.stop.Load() {
			if dev.Poll(wcs[:]) > 0 {
				offer(ch, wcs[0].ID)
			}
			between()
		}
	}()
	receive(b, ch)
	dev.stop.Store(true)
	<-done
}

func benchPoller(b *testing.B) {
	dev := new(metronome)
	ch := make(chan uint64, 16)
	cfg := Config{SpinRounds: noBound}
	engine, _ := newEngine(b, dev, cfg, completeFunc(func(wcs []hw.WC) {
		for _, wc := range wcs {
			offer(ch, wc.ID)
		}
	}))
	if _, err := engine.Attach(nil, 8); err != nil {
		b.Fatal(err)
	}
	receive(b, ch)
	dev.stop.Store(true)
}

// offer sends without waiting, because a receiver that has seen enough receives no
// more.
func offer(ch chan<- uint64, id uint64) {
	select {
	case ch <- id:
	default:
	}
}

func receive(b *testing.B, ch <-chan uint64) {
	took := make([]float64, 0, 1<<16)
	b.ResetTimer()
	for b.Loop() {
		at := <-ch
		took = append(took, float64(time.Now().UnixNano()-int64(at)))
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "p50-ns")
	b.ReportMetric(took[len(took)*99/100], "p99-ns")
}
