package raftlog

import (
	"errors"
	"os"
	"syscall"

	"github.com/hashicorp/raft-wal/types"
)

// syncData makes stable what a file has, but not when that was written.
func syncData(f types.WritableFile) error {
	system, ok := f.(interface{ Fd() uintptr })
	if !ok {
		return f.Sync()
	}
	for {
		if err := syscall.Fdatasync(int(system.Fd())); err != syscall.EINTR {
			return err
		}
	}
}

// allocate gives a new file a length, and the room for it if its file system can.
func allocate(f *os.File, size int64) error {
	const piece = 8 << 20 // a signal interrupts the call, which gives back then what it has
	for off := int64(0); off < size; {
		n := min(piece, size-off)
		switch err := syscall.Fallocate(int(f.Fd()), 0, off, n); {
		case err == nil:
			off += n
		case err == syscall.EINTR:
		case errors.Is(err, errors.ErrUnsupported):
			return f.Truncate(size)
		default:
			return os.NewSyscallError("fallocate", err)
		}
	}
	return nil
}
