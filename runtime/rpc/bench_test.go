package rpc

import (
	"fmt"
	"os"
	"testing"
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
