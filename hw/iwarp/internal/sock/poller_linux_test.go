package sock

import (
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// long is how long an awaited condition may take.
const long = 10 * time.Second

// side is a Socket over one end of a TCP connection.
type side struct {
	net.Conn
	raw    syscall.RawConn
	polled atomic.Int32 // polls that have read
}

func newSide(t *testing.T, conn net.Conn) *side {
	t.Helper()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	return &side{Conn: conn, raw: raw}
}

// sides are the two ends of a TCP connection.
func sides(t *testing.T) (near, far *side) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = ln.Close() }()
	a, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = a.Close() })
	b, err := ln.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return newSide(t, a), newSide(t, b)
}

func (s *side) Control(f func(fd uintptr)) error { return s.raw.Control(f) }

func (*side) Hang() {}

func (s *side) Poll() (came bool) {
	var b [16]byte
	n := 0
	_ = s.Control(func(fd uintptr) { n, _ = unix.Read(int(fd), b[:]) })
	if n > 0 {
		s.polled.Add(1)
	}
	return n > 0
}

// say has octets come to a socket, which wait there when it returns.
func say(t *testing.T, from, to *side) {
	t.Helper()
	_, err := from.Write([]byte{1})
	require.NoError(t, err)
	require.NoError(t, to.Control(func(fd uintptr) { awaitReadable(t, int(fd)) }))
}

func awaitReadable(t *testing.T, fd int) {
	t.Helper()
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(ready, int(long.Milliseconds()))
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

// begun is a poller that consumers have called for a while.
func begun(t *testing.T) *Poller {
	p := new(Poller)
	t.Cleanup(p.Close)
	for range netpollEvery {
		p.Progress()
	}
	require.True(t, p.begun)
	return p
}

func TestConsumersPollEachOfADevicesSockets(t *testing.T) {
	p := begun(t)
	var nears, fars []*side
	for n := 1; n <= 3; n++ {
		near, far := sides(t)
		p.Add(near)
		defer p.Remove(near)
		nears, fars = append(nears, near), append(fars, far)
		assert.Equal(t, n > 1, p.opened, "%d sockets", n)
		assert.Equal(t, n == 1, p.alone.Load() != nil, "%d sockets", n)
		for i := range nears {
			had := nears[i].polled.Load()
			say(t, fars[i], nears[i])
			p.Progress()
			p.Progress() // the call behind one that has read reads nothing
			assert.Equal(t, had+1, nears[i].polled.Load(), "socket %d of %d", i, n)
		}
	}
}

func TestASocketIsPolledThatWasAddedBeforeConsumersPolled(t *testing.T) {
	var p Poller
	defer p.Close()
	near, far := sides(t)
	p.Add(near)
	assert.Nil(t, p.alone.Load())
	for range netpollEvery {
		p.Progress()
	}
	say(t, far, near)
	p.Progress()
	assert.EqualValues(t, 1, near.polled.Load())
	p.Remove(near)
	say(t, far, near)
	for range 2 * netpollEvery {
		p.Progress()
	}
	assert.EqualValues(t, 1, near.polled.Load(), "it has left")
}

// A device whose only socket has gone has its next one polled in the same way.
func TestTheSocketAfterTheOnlyOneIsPolledToo(t *testing.T) {
	p := begun(t)
	for range 3 {
		near, _ := sides(t)
		p.Add(near)
		assert.Same(t, near, *p.alone.Load())
		p.Remove(near)
		assert.Nil(t, p.alone.Load())
		assert.False(t, p.opened)
	}
}

func TestTheCallAfterAReadReadsNothing(t *testing.T) {
	p := begun(t)
	near, far := sides(t)
	p.Add(near)
	defer p.Remove(near)
	for i := range int32(3) {
		say(t, far, near)
		p.calls.Store(0)
		p.read.Store(true)
		p.Progress()
		assert.Equal(t, i, near.polled.Load(), "the call after a read has read")
		p.Progress()
		assert.Equal(t, i+1, near.polled.Load())
		assert.True(t, p.read.Load(), "the read is noted")
		assert.EqualValues(t, 1, p.calls.Load(), "a read that finds octets costs less than a call in vain")
	}
}
