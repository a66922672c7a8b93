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
		if !errors.Is(err, fs.ErrExist) {
			_ = f.VFS.Delete(dir, name) // it may be there, without the room that it wants
		}
		f.failed.Store(&err)
		return w, err
	}
	return &witnessed{WritableFile: w, name: witness(dir, name), size: int64(size)}, nil
}

// OpenWriter implements types.VFS.
func (f *files) OpenWriter(dir, name string) (types.WritableFile, error) {
	w, err := f.VFS.OpenWriter(dir, name)
	if err != nil {
		return w, err
	}
	info, err := os.Stat(filepath.Join(dir, name))
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &witnessed{WritableFile: w, name: witness(dir, name), size: info.Size()}, nil
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
	size int64

	// Owned by whoever writes.
	made    bool
	written int64 // up to where the file was written, zeros included
}

// ahead is how much of a file is written as zeros before it is used.
const ahead = 1 << 20

var zeros [ahead]byte

// WriteAt implements types.WritableFile. The log is written in order, and what it is going to write is written as zeros before, piece by
// piece: space that was only allocated becomes the file's with the sync of what is written there first, for which the file
// system would have to write its own journal, each time.
func (w *witnessed) WriteAt(b []byte, off int64) (int, error) {
	n, err := w.WritableFile.WriteAt(b, off)
	end := off + int64(len(b))
	if err != nil || end <= w.written {
		return n, err
	}
	if w.written = min(end+ahead, w.size); end < w.written {
		_, err = w.WritableFile.WriteAt(zeros[:w.written-end], end)
	}
	return n, err
}

// Sync implements types.WritableFile.
func (w *witnessed) Sync() error {
	if w.made {
		return syncData(w.WritableFile)
	}
	if err := w.WritableFile.Sync(); err != nil {
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
