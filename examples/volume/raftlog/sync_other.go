//go:build !linux && !wasip1

package raftlog

import (
	"os"

	"github.com/hashicorp/raft-wal/types"
)

// syncData makes stable what a file has.
func syncData(f types.WritableFile) error { return f.Sync() }

// allocate gives a new file a length.
func allocate(f *os.File, size int64) error { return f.Truncate(size) }
