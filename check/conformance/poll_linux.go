package conformance

import (
	"errors"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// pollLoop is a program's own poll loop, without Go's network poller: an epoll
// instance.
type pollLoop struct {
	epoll int
	fd    int32
}

func newPollLoop(r *rig, fd uintptr) *pollLoop {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	require.NoError(r, err)
	r.later(func() error { return unix.Close(epoll) })
	l := &pollLoop{epoll, int32(fd)}
	require.NoError(r, unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, int(fd), &unix.EpollEvent{Events: unix.EPOLLIN, Fd: l.fd}))
	return l
}

// readable waits at most limit until the descriptor is readable.
func (l *pollLoop) readable(r *rig, limit time.Duration) bool {
	end := time.Now().Add(limit)
	for {
		var got [2]unix.EpollEvent
		n, err := unix.EpollWait(l.epoll, got[:], int(max(time.Until(end), 0).Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		require.NoError(r, err)
		if n > 0 {
			require.Equal(r, l.fd, got[0].Fd)
		}
		return n > 0
	}
}
