//go:build !wasip1

package raftlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// files are a log's files. The write-ahead log makes the next one in a goroutine of its own, and tells
// nobody if it can't. Beside each file that has records for good lies an empty one, a witness: without it nobody
// could tell a file that was taken away from one that a crash kept from being made.
type files struct {
	types.VFS
	failed atomic.Pointer[error]
}

// witness is the name of a file's witness.
func witness(dir, name string) string { return filepath.Join(dir, name+".kept") }

// Create implements types.VFS.
func (f *files) Create(dir, name string, size uint64) (types.WritableFile, error) {
	w, err := f.VFS.Create(dir, name, size)
	if err != nil {
		f.failed.Store(&err)
		return w, err
	}
	return &witnessed{WritableFile: w, name: witness(dir, name)}, nil
}

// OpenWriter implements types.VFS.
func (f *files) OpenWriter(dir, name string) (types.WritableFile, error) {
	w, err := f.VFS.OpenWriter(dir, name)
	if err != nil {
		return w, err
	}
	return &witnessed{WritableFile: w, name: witness(dir, name)}, nil
}

// Delete implements types.VFS.
func (f *files) Delete(dir, name string) error {
	if err := os.Remove(witness(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.VFS.Delete(dir, name)
}

// whole reports files that the log had, and has no more.
func (f *files) whole(dir string, meta *metadb.BoltMetaDB) error {
	state, err := meta.Load(dir)
	if err != nil {
		return err
	}
	for _, s := range state.Segments {
		name := segment.FileName(s)
		_, gone := os.Stat(filepath.Join(dir, name))
		_, kept := os.Stat(witness(dir, name))
		if errors.Is(gone, fs.ErrNotExist) && kept == nil {
			return fmt.Errorf("%s: %w", name, ErrLost)
		}
	}
	return nil
}

// witnessed is a file that gets its witness when it has become stable first.
type witnessed struct {
	types.WritableFile
	name string
	made bool // owned by whoever syncs
}

// Sync implements types.WritableFile.
func (w *witnessed) Sync() error {
	if err := w.WritableFile.Sync(); err != nil || w.made {
		return err
	}
	f, err := os.OpenFile(w.name, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(w.name))
	if err != nil {
		return err
	}
	w.made = true
	return errors.Join(d.Sync(), d.Close())
}

// explain adds to an error why there is no next file.
func (f *files) explain(err error) error {
	if why := f.failed.Load(); why != nil {
		err = errors.Join(*why, err)
	}
	return err
}
