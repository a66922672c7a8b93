package stream

import (
	"fmt"
	"io"
	"net"
	"testing"

	dat "godat/runtime"
)

// BenchmarkBytes is the time of 1 MiB that one end writes and the other one reads.
func BenchmarkBytes(b *testing.B) {
	onEachPair(b, func(b *testing.B, from, to net.Conn) {
		const size = 1 << 20
		b.SetBytes(size)
		read := make(chan error, 1)
		go func() {
			p := make([]byte, size)
			var err error
			for n := 0; n < b.N && err == nil; n++ {
				_, err = io.ReadFull(to, p)
			}
			read <- err
		}()
		p := make([]byte, size)
		for range b.N {
			if _, err := from.Write(p); err != nil {
				b.Fatal(err)
			}
		}
		if err := <-read; err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkRoundTrip is the time of 64 bytes there and back.
func BenchmarkRoundTrip(b *testing.B) {
	onEachPair(b, func(b *testing.B, from, to net.Conn) {
		echoed := make(chan error, 1)
		echo := func(c net.Conn, asks bool) (err error) {
			var p [64]byte
			for n := 0; n < b.N && err == nil; n++ {
				if asks {
					_, err = c.Write(p[:])
				}
				if err == nil {
					_, err = io.ReadFull(c, p[:])
				}
				if err == nil && !asks {
					_, err = c.Write(p[:])
				}
			}
			return err
		}
		go func() { echoed <- echo(to, false) }()
		if err := echo(from, true); err != nil {
			b.Fatal(err)
		}
		if err := <-echoed; err != nil {
			b.Fatal(err)
		}
	})
}

// onEachPair runs a benchmark over net's connections and over streams.
func onEachPair(b *testing.B, f func(b *testing.B, from, to net.Conn)) {
	b.Run("over=net.Pipe", func(b *testing.B) {
		from, to := net.Pipe()
		f(b, from, to)
	})
	b.Run("over=net.Conn", func(b *testing.B) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		from, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		to, err := l.Accept()
		if err != nil {
			b.Fatal(err)
		}
		f(b, from, to)
		_, _, _ = from.Close(), to.Close(), l.Close()
	})
	for _, way := range []struct {
		name, provider string
		params         map[string]string
	}{
		{"loop", "loop", nil},
		{"iwarp", "iwarp:127.0.0.1", nil},
		{"iwarp-nocrc", "iwarp:127.0.0.1", map[string]string{"crc": "false"}},
	} {
		for _, ring := range []int{64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("over=%s/ring=%dKiB", way.name, ring>>10), func(b *testing.B) {
				from, to := openRig(b, way.provider, Config{Ring: ring}, dat.WithParams(way.params)).pair()
				f(b, from, to)
			})
		}
	}
}
