//go:build linux && !race

package iwarp

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// vector keeps iovecs between calls, because unix.Writev allocates them when there are
// more than a few.
type vector struct{ iov []unix.Iovec }

func (v *vector) fill(parts [][]byte) {
	v.iov = v.iov[:0]
	for _, p := range parts {
		if len(p) == 0 {
			continue
		}
		v.iov = append(v.iov, unix.Iovec{Base: unsafe.SliceData(p)})
		v.iov[len(v.iov)-1].SetLen(len(p))
	}
}

// readNow reads. It reads into a short slice without telling the Go runtime of the system call, for
// the same reasons as writev.
func readNow(fd int, b []byte) (int, error) {
	if len(b) > brief {
		return syscall.Read(fd, b)
	}
	n, _, errno := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// writev writes a single short part, which is what a small message is, without telling
// the Go runtime of the system call: the socket doesn't block, and a call that takes a
// microsecond is not worth the telling.
func (v *vector) writev(fd int, parts [][]byte) (int, error) {
	if len(parts) != 1 || len(parts[0]) > brief {
		return v.call(unix.SYS_WRITEV, fd, parts)
	}
	b := parts[0]
	n, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

func (v *vector) readv(fd int, parts [][]byte) (int, error) { return v.call(unix.SYS_READV, fd, parts) }

func (v *vector) call(trap uintptr, fd int, parts [][]byte) (int, error) {
	v.fill(parts)
	n, _, errno := unix.Syscall(trap, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(v.iov))), uintptr(len(v.iov)))
	clear(v.iov)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
