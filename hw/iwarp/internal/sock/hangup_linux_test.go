package sock

import (
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A goroutine that uses the socket keeps it open while another closes it. So the kernel reports the
// hang-up of a socket whose receiver has gone.
func TestAHangUpOfASocketThatHasLeftWarnsNobody(t *testing.T) {
	near, far := sides(t)
	h := HangUps{opened: true}
	require.NoError(t, h.set.open())
	defer func() { require.NoError(t, unix.Close(h.set.fd)) }()
	require.True(t, h.Add(near))

	uses, letGo := make(chan struct{}), make(chan struct{})
	var others sync.WaitGroup
	others.Go(func() {
		_ = near.Control(func(uintptr) {
			close(uses)
			<-letGo
		})
	})
	<-uses
	others.Go(func() { _ = near.Close() })
	require.Eventually(t, func() bool { return near.Control(func(uintptr) {}) != nil }, long, time.Millisecond, "it is being closed")
	h.Remove(near)
	require.NoError(t, far.Conn.(*net.TCPConn).SetLinger(0))
	require.NoError(t, far.Close())
	awaitReadable(t, h.set.fd) // the kernel reports the hang-up
	assert.False(t, h.warn(0), "there is more to wait for")
	close(letGo)
	others.Wait()
}

// unreadable is a descriptor that the network poller does not take.
type unreadable struct{ syscall.RawConn }

func (unreadable) Read(func(uintptr) bool) error { return unix.EPERM }

// hanging is a side that counts its warnings.
type hanging struct {
	*side
	times int
}

func (h *hanging) Hang() { h.times++ }

// Otherwise a receiver would rely on warnings that nobody gives.
func TestHangUpsThatCanNotWaitSaySoToAllReceivers(t *testing.T) {
	a, b := sides(t)
	near, far := &hanging{side: a}, &hanging{side: b}
	h := HangUps{opened: true, raw: unreadable{}, gone: make(chan struct{})}
	require.NoError(t, h.set.open())
	defer func() { require.NoError(t, unix.Close(h.set.fd)) }()
	require.True(t, h.Add(near))
	h.run()
	assert.Equal(t, 1, near.times)
	assert.False(t, h.Add(far), "nobody would warn it")
	assert.Zero(t, far.times)
}
