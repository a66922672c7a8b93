package rpc

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkCall has a call of 64 bytes and its answer, by one caller and by many.
func BenchmarkCall(b *testing.B) {
	for _, name := range []string{"loop", "iwarp:127.0.0.1"} {
		for parallel, title := range map[int]string{0: "/1", 16: "/16"} {
			b.Run(name+title, func(b *testing.B) {
				ia := open(b, name)
				s := serve(b, ia, Config{}, 2, echo)
				c := dial(b, ia, s, Config{})
				call := func(dst []byte) {
					if _, err := c.Call(b.Context(), Call{Payload: dst[:64]}, dst[:0]); err != nil {
						b.Error(err)
					}
				}
				b.ReportAllocs()
				if parallel == 0 {
					dst := make([]byte, 64)
					for b.Loop() {
						call(dst)
					}
					return
				}
				b.SetParallelism(parallel)
				b.RunParallel(func(pb *testing.PB) {
					dst := make([]byte, 64)
					for pb.Next() {
						call(dst)
					}
				})
			})
		}
	}
}

// BenchmarkFile has a file that goes into the caller's memory, and the caller's memory that goes into
// a file.
func BenchmarkFile(b *testing.B) {
	for _, name := range []string{"loop", "iwarp:127.0.0.1"} {
		for _, size := range []int{16 << 10, 1 << 20, 64 << 20} {
			for method, title := range []string{"WriteFile", "ReadFile"} {
				b.Run(fmt.Sprintf("%s/%s/%d", name, title, size), func(b *testing.B) {
					ia := open(b, name)
					f, _ := opened(b, size, os.O_RDWR)
					s := serve(b, ia, Config{}, 1, func(r *Request) {
						move := r.WriteFile
						if r.Method() == 1 {
							move = r.ReadFile
						}
						if _, err := move(f, 0); err != nil {
							b.Error(err)
						}
						_ = r.Reply(nil)
					})
					c := dial(b, ia, s, Config{})
					call := Call{Method: uint16(method), SinkBytes: make([]byte, size)}
					if method == 1 {
						call.SourceBytes, call.SinkBytes = call.SinkBytes, nil
					}
					b.SetBytes(int64(size))
					for b.Loop() {
						if _, err := c.Call(b.Context(), call, nil); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// BenchmarkLarge has calls with 64 MiB, by one caller and by eight: alone, and beside small calls of the
// same client, whose time it reports.
func BenchmarkLarge(b *testing.B) {
	const size = 64 << 20
	for _, get := range []bool{true, false} {
		for _, callers := range []int{1, 8} {
			for _, beside := range []bool{false, true} {
				b.Run(fmt.Sprintf("get=%v/callers=%d/beside=%v", get, callers, beside), func(b *testing.B) {
					ia := open(b, "iwarp:127.0.0.1")
					memory := make([]byte, size)
					s := serve(b, ia, Config{}, 16, func(r *Request) {
						if r.SinkLen() > 0 {
							_ = r.WriteBytes(memory, 0)
						} else if r.SourceLen() > 0 {
							_, _ = r.ReadAll()
						}
						echo(r)
					})
					c := dial(b, ia, s, Config{})
					b.SetBytes(size)
					stop, done := make(chan bool), make(chan []time.Duration, 1)
					if beside {
						go func() { done <- smallCalls(b, c, stop) }()
					}
					var left atomic.Int64
					left.Store(int64(b.N))
					b.ResetTimer()
					var all sync.WaitGroup
					for range callers {
						all.Go(func() {
							call := Call{SinkBytes: make([]byte, size)}
							if !get {
								call.SourceBytes, call.SinkBytes = call.SinkBytes, nil
							}
							for left.Add(-1) >= 0 {
								if _, err := c.Call(b.Context(), call, nil); err != nil {
									b.Error(err)
								}
							}
						})
					}
					all.Wait()
					b.StopTimer()
					close(stop)
					if beside {
						took := <-done
						slices.Sort(took)
						b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
						b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
					}
				})
			}
		}
	}
}

// smallCalls makes small calls now and then, until it is stopped.
func smallCalls(b *testing.B, c *Client, stop chan bool) (took []time.Duration) {
	for {
		select {
		case <-stop:
			return append(took, 0)
		case <-time.After(200 * time.Microsecond):
		}
		began := time.Now()
		if _, err := c.Call(b.Context(), Call{Payload: []byte("small")}, nil); err != nil {
			b.Error(err)
		}
		took = append(took, time.Since(began))
	}
}
