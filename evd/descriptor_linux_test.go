package evd

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func readable(t testing.TB, fd uintptr) bool {
	t.Helper()
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	require.NoError(t, err)
	return n == 1 && fds[0].Revents == unix.POLLIN
}

func descriptorPath(fd uintptr) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }
