package main

import (
	"io"
	"net"
	"runtime"

	"godat/bench/lane"
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
