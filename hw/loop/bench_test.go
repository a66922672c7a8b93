package loop

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"godat/hw"
)

// counter is a sink that only counts.
type counter int

func (c *counter) Complete(wcs []hw.WC) { *c += counter(len(wcs)) }

// BenchmarkPair posts a receive and a send between two bare queue pairs: two
// posts, a copy and two completions.
func BenchmarkPair(b *testing.B) {
	for _, size := range []int{0, 64, 4096, 65536} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			var got counter
			x, y := pair(b, func(cfg *hw.QPConfig) {
				cfg.SendSink, cfg.RecvSink = &got, &got
			})
			sends := []hw.SendWR{send(1, x.sge(0, size))}
			recvs := []hw.RecvWR{{ID: 2, SGL: []hw.SGE{y.sge(0, size)}}}
			b.ReportAllocs()
			b.SetBytes(int64(size))
			n := 0
			for b.Loop() {
				n++
				_, err := y.qp.PostRecv(recvs)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := x.qp.PostSend(sends); err != nil {
					b.Fatal(err)
				}
			}
			require.Equal(b, 2*n, int(got))
		})
	}
}

// BenchmarkBatch posts 16 receives and 16 sends at a time; an op is one of each.
func BenchmarkBatch(b *testing.B) {
	const batch = 16
	var got counter
	x, y := pair(b, func(cfg *hw.QPConfig) { cfg.SendSink, cfg.RecvSink = &got, &got })
	sends, recvs := make([]hw.SendWR, batch), make([]hw.RecvWR, batch)
	for i := range batch {
		sends[i] = send(uint64(i), x.sge(64*i, 64))
		recvs[i] = hw.RecvWR{ID: uint64(i), SGL: []hw.SGE{y.sge(64*i, 64)}}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += batch {
		if _, err := y.qp.PostRecv(recvs); err != nil {
			b.Fatal(err)
		}
		if _, err := x.qp.PostSend(sends); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWrite keeps eight RDMA writes outstanding. Writes longer than 64 KiB go
// through the workers.
func BenchmarkWrite(b *testing.B) {
	for _, size := range []int{64 << 10, 256 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			var done atomic.Uint64
			x, y := pair(b, func(cfg *hw.QPConfig) { cfg.SendSink = countSink{&done} })
			w := []hw.SendWR{wr(hw.OpWrite, x, 0, uint32(size), y.mr.RKey(), y.addr(0))}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			b.ResetTimer()
			for i := range uint64(b.N) {
				if _, err := x.qp.PostSend(w); err != nil {
					b.Fatal(err)
				}
				for done.Load()+8 <= i {
					runtime.Gosched()
				}
			}
			for done.Load() < uint64(b.N) {
				runtime.Gosched()
			}
		})
	}
}

// BenchmarkCopy measures a bare copy, which a write can't beat.
func BenchmarkCopy(b *testing.B) {
	for _, size := range []int{64 << 10, 256 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			from, to := make([]byte, size), make([]byte, size)
			b.SetBytes(int64(size))
			for b.Loop() {
				copy(to, from)
			}
		})
	}
}

// BenchmarkPingPong sends 64 B back and forth between two goroutines that poll.
func BenchmarkPingPong(b *testing.B) {
	var x, y *side
	var gotX, gotY atomic.Uint64
	dev := open(b, uniqueName())
	x = newSide(b, dev, func(cfg *hw.QPConfig) { cfg.SendSink, cfg.RecvSink = discard{}, countSink{&gotX} })
	y = newSide(b, dev, func(cfg *hw.QPConfig) { cfg.SendSink, cfg.RecvSink = discard{}, countSink{&gotY} })
	connect(b, x, y)
	for range 16 {
		x.recv(1, x.sge(4096, 64))
		y.recv(1, y.sge(4096, 64))
	}
	play := func(s *side, got *atomic.Uint64, n uint64, first bool) {
		sends, recvs := []hw.SendWR{send(1, s.sge(0, 64))}, []hw.RecvWR{{SGL: []hw.SGE{s.sge(4096, 64)}}}
		for i := range n {
			if first {
				_, _ = s.qp.PostSend(sends)
			}
			for got.Load() <= i {
				runtime.Gosched()
			}
			_, _ = s.qp.PostRecv(recvs)
			if !first {
				_, _ = s.qp.PostSend(sends)
			}
		}
	}
	b.ResetTimer()
	done := make(chan struct{})
	go func() { defer close(done); play(y, &gotY, uint64(b.N), false) }()
	play(x, &gotX, uint64(b.N), true)
	<-done
}
