//go:build !linux && !wasip1

package raftlog

import "github.com/hashicorp/raft-wal/types"

// syncData makes stable what a file has.
func syncData(f types.WritableFile) error { return f.Sync() }
