//go:build guest

package ibv

import (
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"godat/hw"
)

// Each end polls on a thread of its own, which it does not yield, like the two processes
// of the C tools with which bench/ibv.sh compares these benchmarks. The guest has two
// processors.

const (
	latencySize   = 64       // ib_send_lat -s 64
	bandwidthSize = 64 << 10 // ib_write_bw -s 65536
	bandwidthMost = 128      // its --tx-depth
	writeSize     = 4 << 10  // of the writes that bench's BenchmarkIBVWrites posts through the library
	writeMost     = 32
)

func newBenchmark(b *testing.B) *bench {
	b.Helper()
	r := &bench{t: b, cqDepth: 4 * bandwidthMost}
	deep := func(c *hw.QPConfig) { c.SendDepth, c.RecvDepth = bandwidthMost, bandwidthMost }
	for i := range r.ends {
		r.ends[i] = r.open(nil, deep)
	}
	r.connect(nil)
	b.Cleanup(r.close)
	return r
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// spin polls until n more of the end's requests have succeeded. Successes beyond n count
// in the next call.
func (e *benchEnd) spin(n int) {
	var wcs [bandwidthMost]hw.WC
	for e.ahead -= n; e.ahead < 0; {
		m := e.poll.Poll(wcs[:])
		for i := range wcs[:m] {
			if wcs[i].Status != hw.StatusSuccess {
				panic(wcs[i].Status)
			}
		}
		e.ahead += m
	}
}

func crossings(b *testing.B, before counters, e *benchEnd, ops int) {
	after, _ := countersOf(e.dev)
	b.ReportMetric(float64(after.Posts-before.Posts)/float64(ops), "posts/op")
	b.ReportMetric(float64(after.Polls-before.Polls)/float64(ops), "polls/op")
	b.ReportMetric(float64(after.Doorbells-before.Doorbells)/float64(ops), "doorbells/op")
}

// pinger is an end whose requests are built once, so that a benchmark measures neither
// allocations nor test helpers.
type pinger struct {
	*benchEnd
	ask  [1]hw.SendWR
	take [1]hw.RecvWR
}

func newPinger(e *benchEnd) *pinger {
	sgl := []hw.SGE{e.memory(latencySize, hw.LocalRead|hw.LocalWrite).sge(0, latencySize)}
	return &pinger{
		e, [1]hw.SendWR{{ID: 2, Op: hw.OpSend, SGL: sgl}}, [1]hw.RecvWR{{ID: 1, SGL: sgl}},
	}
}

func (p *pinger) send() {
	_, err := p.qp.PostSend(p.ask[:])
	must(err)
}

func (p *pinger) recv() {
	_, err := p.qp.PostRecv(p.take[:])
	must(err)
}

// BenchmarkSendLatency measures half a round trip of 64 bytes. Its sends are not
// signaled, like those of the C tool.
func BenchmarkSendLatency(b *testing.B) {
	r := newBenchmark(b)
	near, far := newPinger(r.ends[0]), newPinger(r.ends[1])
	for _, p := range []*pinger{near, far} { // two: a message may arrive before its receiver posts the first again
		p.recv()
		p.recv()
	}
	before, _ := countersOf(near.dev)
	done := make(chan struct{})
	b.ResetTimer()
	go func() {
		defer close(done)
		goruntime.LockOSThread()
		for range b.N {
			far.spin(1)
			far.send()
			far.recv()
		}
	}()
	goruntime.LockOSThread()
	defer goruntime.UnlockOSThread()
	halves(b, func() {
		near.send()
		near.spin(1)
		near.recv()
	})
	<-done
	b.StopTimer()
	crossings(b, before, near.benchEnd, b.N)
}

// halves makes b.N round trips and reports the median of half a round trip, like the C
// tools' t_typical.
func halves(b *testing.B, trip func()) {
	b.Helper()
	took := make([]time.Duration, b.N)
	last := time.Now()
	for i := range took {
		trip()
		now := time.Now()
		took[i], last = now.Sub(last), now
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000/2, "µs/half")
}

// BenchmarkWriteBandwidth keeps 128 writes of 64 KiB outstanding. The other end's
// thread polls too, unlike the C tool's server.
func BenchmarkWriteBandwidth(b *testing.B) { writes(b, bandwidthSize, bandwidthMost) }

// BenchmarkWrites keeps 32 writes of 4 KiB outstanding: the device alone, without the
// library above it.
func BenchmarkWrites(b *testing.B) { writes(b, writeSize, writeMost) }

// writes keeps most writes of size bytes outstanding.
func writes(b *testing.B, size, most int) {
	b.Helper()
	r := newBenchmark(b)
	from, to := r.ends[0], r.ends[1]
	near, far := from.memory(size, hw.LocalRead), to.memory(size, hw.RemoteWrite)
	wrs := []hw.SendWR{{
		ID: 1, Op: hw.OpWrite, Flags: hw.WRSignaled, SGL: []hw.SGE{near.sge(0, size)},
		RKey: far.RKey(), RemoteAddr: far.addr(),
	}}
	b.SetBytes(int64(size))
	before, _ := countersOf(from.dev)
	b.ResetTimer()
	out := 0
	for range b.N {
		if out == most {
			from.spin(1)
			out--
		}
		_, err := from.qp.PostSend(wrs)
		must(err)
		out++
	}
	from.spin(out)
	b.StopTimer()
	crossings(b, before, from, b.N)
}

// BenchmarkSendLatencyWithEvents is BenchmarkSendLatency with ends that sleep until an
// event, as in ib_send_lat -e.
func BenchmarkSendLatencyWithEvents(b *testing.B) {
	r := newBenchmark(b)
	// look polls once, and reports whether anything completed, and whether a receive did.
	look := func(e *benchEnd) (any, received bool) {
		var wcs [4]hw.WC
		n := e.poll.Poll(wcs[:])
		for _, wc := range wcs[:n] {
			received = received || wc.Op == hw.OpRecv
		}
		return n > 0, received
	}
	await := func(e *benchEnd) {
		for armed := false; ; {
			any, received := look(e)
			switch {
			case received:
				return
			case any:
				armed = false
			case !armed:
				armed = true
				must(e.poll.Arm())
			default:
				armed = false
				must(e.poll.Wait())
			}
		}
	}
	near, far := newPinger(r.ends[0]), newPinger(r.ends[1])
	near.recv()
	far.recv()
	done := make(chan struct{})
	b.ResetTimer()
	go func() {
		defer close(done)
		for range b.N {
			await(far.benchEnd)
			far.recv()
			far.send()
		}
	}()
	halves(b, func() {
		near.send()
		await(near.benchEnd)
		near.recv()
	})
	<-done
	b.StopTimer()
}
