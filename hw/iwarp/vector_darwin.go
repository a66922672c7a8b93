//go:build darwin && !race

package iwarp

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// vector is empty: this system's calls need no state.
type vector struct{}

func readNow(fd int, b []byte) (int, error) { return syscall.Read(fd, b) }

func (*vector) writev(fd int, parts [][]byte) (int, error) { return unix.Writev(fd, parts) }

func (*vector) readv(fd int, parts [][]byte) (int, error) { return unix.Readv(fd, parts) }
