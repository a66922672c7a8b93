package mem

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mostProbed is the longest memory whose pages are asked one by one, which gives a page
// that was never used its memory. Of longer memory the mappings are looked up.
const mostProbed = 1 << 20

// accessible returns an error that matches EFAULT if some of the memory can't be read, or
// can't be written, as far as the system can tell. It changes nothing.
func accessible(buf []byte, read, write bool) error {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(buf)))
	to := from + uintptr(len(buf))
	if len(buf) > mostProbed {
		return lookUp(from, to, read, write)
	}
	page := uintptr(os.Getpagesize())
	for at := from; at < to; at = (at &^ (page - 1)) + page {
		word := at &^ 3 // in the same page
		if write && refuses(word, true) || read && refuses(word, false) {
			return refusedAccess(at, write)
		}
	}
	runtime.KeepAlive(buf)
	return nil
}

// refusedAccess says where memory can't be used.
func refusedAccess(at uintptr, write bool) error {
	if write {
		return fmt.Errorf("the memory at %#x can't be written: %w", at, unix.EFAULT)
	}
	return fmt.Errorf("the memory at %#x can't be read: %w", at, unix.EFAULT)
}

// Operations of futex(2), and the operation that FUTEX_WAKE_OP does to its second word:
// it adds nothing, and compares with a number that wakes nobody but by chance, which
// waiters must expect.
const (
	futexPrivate = 128
	futexWait    = 0 | futexPrivate
	futexWakeOp  = 5 | futexPrivate
	addNothing   = 1<<28 | 2<<24 | 0x800
)

// refuses reports whether the system refuses to read, or to write, a word. futex(2) uses
// words atomically, beside whoever else does, and reports a fault in place of a signal. A
// write adds 0.
func refuses(word uintptr, write bool) bool {
	var errno unix.Errno
	if write {
		var own uint32 // nobody waits for it
		_, _, errno = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&own)), futexWakeOp, 0, 0, word, addNothing)
	} else {
		var now unix.Timespec
		_, _, errno = unix.Syscall6(unix.SYS_FUTEX, word, futexWait, 0, uintptr(unsafe.Pointer(&now)), 0, 0)
	}
	return errno == unix.EFAULT
}

// lookUp looks the mappings of the memory up. Without /proc it knows of nothing.
func lookUp(from, to uintptr, read, write bool) error {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() && from < to {
		var begin, end uintptr
		var may string
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s", &begin, &end, &may); n != 3 || end <= from {
			continue
		}
		if begin > from {
			break // there is nothing at from
		}
		if write && may[1] != 'w' || read && may[0] != 'r' {
			return refusedAccess(from, write)
		}
		from = end
	}
	if from < to && !errors.Is(lines.Err(), bufio.ErrTooLong) && lines.Err() == nil {
		return refusedAccess(from, write)
	}
	return nil
}
