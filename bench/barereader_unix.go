//go:build linux || darwin

package main

import (
	"net"
	"syscall"
)

// bareReaders is a round trip of messages each of which a goroutine reads, inside one call of
// RawConn.Read, and sends on a channel: what delivery by channel takes at least over TCP. It
// ends with the connection.
func bareReaders(a, b net.Conn) []contestant {
	fromB, fromA := bareReader(a), bareReader(b)
	return []contestant{{bareRead, func(n int) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			buf := make([]byte, messageSize)
			for range n {
				<-fromA
				must(b.Write(buf))
			}
		}()
		buf := make([]byte, messageSize)
		for range n {
			must(a.Write(buf))
			<-fromB
		}
		<-done
	}}}
}

// bareReader sends an event for each message that comes to conn.
func bareReader(conn net.Conn) <-chan [7]uint64 {
	raw := must(conn.(*net.TCPConn).SyscallConn())
	ch := make(chan [7]uint64, 1)
	go func() {
		buf := make([]byte, 2*messageSize)
		_ = raw.Read(func(fd uintptr) (done bool) {
			switch n, err := syscall.Read(int(fd), buf); {
			case n > 0:
				ch <- [7]uint64{}
				return false // with one message at a time there is no more
			default:
				return err != syscall.EAGAIN && err != syscall.EINTR
			}
		})
	}()
	return ch
}
