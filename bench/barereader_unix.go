//go:build linux || darwin

package main

import (
	"net"
	"syscall"
)

// bareReaders is a round trip of messages each of which a goroutine reads, inside one call of
// RawConn.Read, and sends on a channel: what delivery by channel takes at least over TCP.
func bareReaders(a, b net.Conn) []contestant {
	return []contestant{connPingPong(bareRead, handedOver(a), handedOver(b), messageSize)}
}

// handedOverConn is a connection whose messages another goroutine reads. Read tells only that
// one has come.
type handedOverConn struct {
	net.Conn
	came <-chan [7]uint64
}

func (c handedOverConn) Read(p []byte) (int, error) {
	<-c.came
	return len(p), nil
}

// handedOver has a goroutine read conn.
func handedOver(conn net.Conn) net.Conn {
	came := make(chan [7]uint64, 1)
	go handOver(must(conn.(*net.TCPConn).SyscallConn()), came)
	return handedOverConn{conn, came}
}

// handOver reads messages, and sends an event for each, until the connection ends.
func handOver(raw syscall.RawConn, came chan<- [7]uint64) {
	buf := make([]byte, 2*messageSize)
	_ = raw.Read(func(fd uintptr) (over bool) {
		n, err := syscall.Read(int(fd), buf)
		for err == syscall.EINTR {
			n, err = syscall.Read(int(fd), buf)
		}
		if n > 0 {
			came <- [7]uint64{} // one message is under way at a time, so no more has come
			return false
		}
		return err != syscall.EAGAIN
	})
}
