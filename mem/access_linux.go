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

// accessible returns an error that matches EFAULT if some of the memory can't be read, or
// can't be written, as far as the system can tell. It changes nothing. Of a few pages each
// is asked. Of longer memory the system is asked for the mappings, because a page that was
// never used gets its memory when it is asked.
func accessible(buf []byte, read, write bool) error {
	defer runtime.KeepAlive(buf)
	from := uintptr(unsafe.Pointer(unsafe.SliceData(buf)))
	to := from + uintptr(len(buf))
	if to-from <= 4*uintptr(os.Getpagesize()) {
		return askPages(from, to, read, write)
	}
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return askPages(from, min(to, from+mostProbed), read, write)
	}
	defer f.Close()
	err = askMappings(int(f.Fd()), from, to, read, write)
	switch {
	case !errors.Is(err, unix.ENOTTY):
		return err
	case to-from <= mostProbed:
		return askPages(from, to, read, write)
	}
	return lookUp(f, from, to, read, write)
}

// mostProbed is the longest memory whose pages are asked one by one.
const mostProbed = 1 << 20

// procmap is Linux's struct procmap_query, which asks for the mapping of an address.
type procmap struct {
	size, flags, address, begin, end uint64
	is, _, _                         uint64 // of the next constants
	inode                            uint64 // 0 if no file is mapped
	_                                [4]uint64
}

const (
	askMapping = 0xc0686611 // PROCMAP_QUERY
	isReadable = 0x01
	isWritable = 0x02
)

// askMappings asks for the mappings of the memory, which Linux answers from 6.11 on; before
// that the error is ENOTTY. The pages of a file's mapping are asked, too: it may be longer
// than the file.
func askMappings(maps int, from, to uintptr, read, write bool) error {
	for from < to {
		m := procmap{size: uint64(unsafe.Sizeof(procmap{})), address: uint64(from)}
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(maps), askMapping, uintptr(unsafe.Pointer(&m)))
		switch {
		case errno == unix.ENOENT:
			return refusedAccess(from, write)
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return unix.ENOTTY // the system can't tell
		case write && m.is&isWritable == 0, read && m.is&isReadable == 0:
			return refusedAccess(from, write)
		}
		end := min(to, uintptr(m.end))
		if m.inode != 0 {
			if err := askPages(from, min(end, from+mostProbed), read, write); err != nil {
				return err
			}
		}
		from = end
	}
	return nil
}

// askPages asks each page of the memory.
func askPages(from, to uintptr, read, write bool) error {
	page := uintptr(os.Getpagesize())
	for at := from; at < to; at = (at &^ (page - 1)) + page {
		word := at &^ 3 // in the same page
		if write && refuses(word, true) || read && refuses(word, false) {
			return refusedAccess(at, write)
		}
	}
	return nil
}

// refusedAccess says where memory can't be used.
func refusedAccess(at uintptr, write bool) error {
	if write {
		return fmt.Errorf("the memory at %#x can't be written: %w", at, unix.EFAULT)
	}
	return fmt.Errorf("the memory at %#x can't be read: %w", at, unix.EFAULT)
}

// Operations of futex(2) (futexRequeue is FUTEX_CMP_REQUEUE), and the operation that FUTEX_WAKE_OP does to its second word:
// it adds nothing, and compares with a number that wakes nobody but by chance, which
// waiters must expect.
const (
	futexPrivate = 128
	futexRequeue = 4 | futexPrivate
	futexWakeOp  = 5 | futexPrivate
	addNothing   = 1<<28 | 2<<24 | 0x800
)

// refuses reports whether the system refuses to read, or to write, a word. futex(2) uses
// words atomically, beside whoever else does, and reports a fault in place of a signal. A
// write adds 0. A read compares the word with 0, and then wakes and moves no waiters; FUTEX_WAIT
// would sleep if the word is 0.
func refuses(word uintptr, write bool) bool {
	var errno unix.Errno
	var own uint32 // nobody waits for it
	if write {
		_, _, errno = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&own)), futexWakeOp, 0, 0, word, addNothing)
	} else {
		_, _, errno = unix.Syscall6(unix.SYS_FUTEX, word, futexRequeue, 0, 0, uintptr(unsafe.Pointer(&own)), 0)
	}
	return errno == unix.EFAULT
}

// lookUp looks the mappings of the memory up in the list of all.
func lookUp(f *os.File, from, to uintptr, read, write bool) error {
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
