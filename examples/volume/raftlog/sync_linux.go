package raftlog

import (
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
