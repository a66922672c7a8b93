package rpc

import (
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
