//go:build linux || darwin

package main

import (
	"net"
	"runtime"
	"syscall"
)

// bareReaders are round trips of messages whose readers call RawConn.Read once: a goroutine
// that reads each message and sends on a channel, between a and b, and a consumer that reads
// itself and yields while nothing comes, between p and q. Delivery over TCP takes at least
// that.
func bareReaders(a, b, p, q net.Conn) []contestant {
	return []contestant{
		connPingPong(bareSent, handedOver(a), handedOver(b), messageSize),
		connPingPong(barePolled, polledConn{p}, polledConn{q}, messageSize),
	}
}

// polledConn is a connection whose Read spins on the socket.
type polledConn struct{ net.Conn }

func (c polledConn) Read(p []byte) (n int, err error) {
	raw := must(c.Conn.(*net.TCPConn).SyscallConn())
	readErr := raw.Read(func(fd uintptr) (over bool) {
		for {
			n, err = syscall.Read(int(fd), p)
			if err != syscall.EAGAIN && err != syscall.EINTR {
				return true
			}
			runtime.Gosched()
		}
	})
	if err == nil {
		err = readErr
	}
	return n, err
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
