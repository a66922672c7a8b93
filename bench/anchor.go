package main

import (
	"io"
	"net"
	"runtime"

	"godat/bench/lane"
	"godat/hw/iwarp/wire"
)

// The anchors: what a program would use instead of the library, with as little code as
// possible.

// twoMPSC is the ring traffic of one pair: two events pushed and popped.
func twoMPSC() contestant {
	r := lane.NewMPSC(256)
	var v [7]uint64
	return contestant{"raw MPSC ring, two events", func(n int) {
		for range n {
			r.Push(&v)
			r.Push(&v)
			r.Pop(&v)
			r.Pop(&v)
		}
	}}
}

// rawChannel is one event that one goroutine sends and receives.
func rawChannel() contestant {
	ch := make(chan [7]uint64, 256)
	var v [7]uint64
	return contestant{"raw channel, one event", func(n int) {
		for range n {
			ch <- v
			v = <-ch
		}
	}}
}

// ringPingPong is a round trip between two goroutines that spin on rings, and yield
// whenever a ring is empty.
func ringPingPong() contestant {
	there, back := lane.NewMPSC(64), lane.NewMPSC(64)
	return contestant{"raw rings, spin and yield", func(n int) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			var v [7]uint64
			for range n {
				for !there.Pop(&v) {
					runtime.Gosched()
				}
				back.Push(&v)
			}
		}()
		var v [7]uint64
		for range n {
			there.Push(&v)
			for !back.Pop(&v) {
				runtime.Gosched()
			}
		}
		<-done
	}}
}

func channelPingPong() contestant {
	there, back := make(chan [7]uint64, 1), make(chan [7]uint64, 1)
	return contestant{"raw channels", func(n int) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range n {
				back <- <-there
			}
		}()
		var v [7]uint64
		for range n {
			there <- v
			v = <-back
		}
		<-done
	}}
}

// connPingPong sends size bytes there and back.
func connPingPong(name string, a, b net.Conn, size int) contestant {
	return contestant{name, func(n int) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			buf := make([]byte, size)
			for range n {
				must(io.ReadFull(b, buf))
				must(b.Write(buf))
			}
		}()
		buf := make([]byte, size)
		for range n {
			must(a.Write(buf))
			must(io.ReadFull(a, buf))
		}
		<-done
	}}
}

// connBulk writes size bytes, which the other end reads.
func connBulk(name string, a, b net.Conn, size int) contestant {
	return contestant{name, func(n int) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			buf := make([]byte, size)
			for range n {
				must(io.ReadFull(b, buf))
			}
		}()
		buf := make([]byte, size)
		for range n {
			must(a.Write(buf))
		}
		<-done
	}}
}

// The names of connBulkAsked's contestants, without and with CRCs.
const connAsked, connSummed = "net.Conn that asks", "net.Conn that asks, with a CRC-32C at both ends"

// connBulkAsked is connBulk whose reader asks for all that it reads by a short message, as a
// large Read of a stream does, and with CRCs, if summed, of what is written and of what was
// read: what any stream takes at least that has such messages and CRCs over TCP.
func connBulkAsked(name string, a, b net.Conn, size int, summed bool) contestant {
	add := func(sum *uint32, p []byte) {
		if summed {
			*sum = wire.UpdateCRC(*sum, p)
		}
	}
	return contestant{name, func(n int) {
		var sums [2]uint32
		done := make(chan struct{})
		go func() {
			defer close(done)
			buf, ask := make([]byte, size), make([]byte, messageSize)
			for range n {
				must(b.Write(ask))
				must(io.ReadFull(b, buf))
				add(&sums[1], buf)
			}
		}()
		buf, ask := make([]byte, size), make([]byte, messageSize)
		for range n {
			add(&sums[0], buf)
			must(io.ReadFull(a, ask))
			must(a.Write(buf))
		}
		<-done
		if sums[0] != sums[1] {
			panic("the CRCs differ")
		}
	}}
}

// tcpPair is a connection over loopback TCP.
func tcpPair() (a, b net.Conn) {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	a = must(net.Dial("tcp", l.Addr().String()))
	return a, must(l.Accept())
}

// must is check for a call with a value.
func must[T any](v T, err error) T {
	check(err)
	return v
}
