package raftlog

import (
	"errors"
	"sync/atomic"

	"github.com/hashicorp/raft-wal/types"
)

// files are a log's files. The write-ahead log makes the next one in a goroutine of its own, and tells
// nobody if it can't.
type files struct {
	types.VFS
	failed atomic.Pointer[error]
}

// Create implements types.VFS.
func (f *files) Create(dir, name string, size uint64) (types.WritableFile, error) {
	w, err := f.VFS.Create(dir, name, size)
	if err != nil {
		f.failed.Store(&err)
	}
	return w, err
}

// explain adds to an error why there is no next file.
func (f *files) explain(err error) error {
	if why := f.failed.Load(); why != nil {
		err = errors.Join(*why, err)
	}
	return err
}
