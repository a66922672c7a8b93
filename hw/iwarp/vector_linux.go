//go:build linux && !race

package iwarp

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// vector keeps iovecs between calls, because unix.Writev allocates them when there are
// more than a few.
type vector struct{ iov []unix.Iovec }

// fill sets the iovecs, and returns how many bytes they have.
func (v *vector) fill(parts [][]byte) (total int) {
	v.iov = v.iov[:0]
	for _, p := range parts {
		if len(p) == 0 {
			continue
		}
		v.iov = append(v.iov, unix.Iovec{Base: unsafe.SliceData(p)})
		v.iov[len(v.iov)-1].SetLen(len(p))
		total += len(p)
	}
	return total
}

// readNow reads into a buffer of the connection's. It and writev make the system's calls for
// sockets: read and write look first at what any file might have, which costs a round trip of
// small messages 3 % of its time.
func readNow(fd int, b []byte) (int, error) {
	return untold(unix.SYS_RECVFROM, fd, unsafe.Pointer(unsafe.SliceData(b)), len(b), 0)
}

// writev writes. It takes an iovec array for more than one part only: a small message is one part.
func (v *vector) writev(fd int, parts [][]byte) (n int, err error) {
	if len(parts) == 1 && len(parts[0]) <= mostUntold {
		return untold(unix.SYS_SENDTO, fd, unsafe.Pointer(unsafe.SliceData(parts[0])), len(parts[0]), unix.MSG_NOSIGNAL)
	}
	return v.call(unix.SYS_WRITEV, fd, parts)
}

// readv reads into memory of the program's.
func (v *vector) readv(fd int, parts [][]byte) (int, error) {
	return v.call(unix.SYS_READV, fd, parts)
}

// call makes a system call with an iovec array.
func (v *vector) call(trap uintptr, fd int, parts [][]byte) (n int, err error) {
	f := untold
	if v.fill(parts) > mostUntold {
		f = told
	}
	n, err = f(trap, fd, unsafe.Pointer(unsafe.SliceData(v.iov)), len(v.iov), 0)
	clear(v.iov)
	return n, err
}

// mostUntold is the most bytes of a call that the Go runtime is not told of. The longest, a
// write over the loopback device, took 19 µs where that was measured; after 20 µs the
// runtime's monitor would look.
const mostUntold = 256 << 10

// untold makes a system call without telling the Go runtime. Nothing waits in the call, since
// the socket does not block: it copies what has come, or does not write much. Telling costs
// as much as some of these calls, and more while nothing else runs: the runtime's monitor
// sleeps then. A call that the runtime is told of wakes it, and it looks every 20 µs for a
// while, and gives the processor of a call that it finds to another thread. A page of the
// program's memory that has to be fetched first keeps the processor, as in a Go program's own
// access to it. Calls that take no flags ignore them.
func untold(trap uintptr, fd int, p unsafe.Pointer, n, flags int) (int, error) {
	done, _, errno := unix.RawSyscall6(trap, uintptr(fd), uintptr(p), uintptr(n), uintptr(flags), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(done), nil
}

// told makes a system call that may take long. A large write may do the work of the peer's
// end of the connection, too.
func told(trap uintptr, fd int, p unsafe.Pointer, n, flags int) (int, error) {
	done, _, errno := unix.Syscall6(trap, uintptr(fd), uintptr(p), uintptr(n), uintptr(flags), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(done), nil
}
