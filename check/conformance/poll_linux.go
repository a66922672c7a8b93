package conformance

import (
	"errors"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// readable waits at most limit until a descriptor is readable, as a program does that has
// a poll loop of its own: by poll(2), without Go's network poller.
func readable(r *rig, fd uintptr, limit time.Duration) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for end := time.Now().Add(limit); ; {
		n, err := unix.Poll(fds, int(max(time.Until(end), 0).Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		require.NoError(r, err)
		return n > 0
	}
}
