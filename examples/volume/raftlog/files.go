//go:build !wasip1

package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// files are a log's files. The write-ahead log makes the next one in a goroutine of its own, and tells
// nobody if it can't. Beside each file that has records for good lies an empty one, a witness, and the log's index says which is
// the last such file: without both nobody could tell a file that was taken away from one that a crash kept from being made.
type files struct {
	types.VFS
	root   *os.Root
	meta   *metadb.BoltMetaDB
	failed atomic.Pointer[error]
}

// witness is the name of a file's witness.
func witness(name string) string { return name + ".kept" }

// keyKept is the key of the number behind that of the last file that has records for good. A program of before has witnesses alone.
var keyKept = []byte("kept")

// kept is that number, 0 without such files.
func (f *files) kept() (uint64, error) {
	b, err := f.meta.GetStable(keyKept)
	if err != nil || len(b) != 8 {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// numberOf is the number in a file's name.
func numberOf(name string) (n uint64, err error) {
	var base uint64
	_, err = fmt.Sscanf(name, "%020d-%016x.wal", &base, &n)
	return n, err
}

// keep notes for good that a file has records.
func (f *files) keep(name string) error {
	n, err := numberOf(name)
	if err != nil {
		return err
	}
	kept, err := f.kept()
	if err != nil || n < kept {
		return err
	}
	return f.meta.SetStable(keyKept, binary.LittleEndian.AppendUint64(nil, n+1))
}

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
	return &witnessed{WritableFile: w, files: f, name: name, size: int64(size)}, nil
}

// OpenWriter implements types.VFS.
func (f *files) OpenWriter(dir, name string) (types.WritableFile, error) {
	w, err := f.VFS.OpenWriter(dir, name)
	if err != nil {
		return w, err
	}
	info, err := f.root.Stat(name)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &witnessed{WritableFile: w, files: f, name: name, size: info.Size()}, nil
}

// Delete implements types.VFS.
func (f *files) Delete(dir, name string) error {
	if err := f.root.Remove(witness(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.VFS.Delete(dir, name)
}

// whole reports files that the log had, and has no more.
func (f *files) whole(dir string) error {
	state, err := f.meta.Load(dir)
	if err != nil {
		return err
	}
	kept, err := f.kept()
	if err != nil {
		return err
	}
	for _, s := range state.Segments {
		name := segment.FileName(s)
		_, gone := f.root.Stat(name)
		_, witnessed := f.root.Stat(witness(name))
		if errors.Is(gone, fs.ErrNotExist) && (witnessed == nil || s.ID < kept || !s.SealTime.IsZero()) {
			return fmt.Errorf("%s: %w", name, ErrLost)
		}
	}
	return nil
}

// witnessed is a file that gets its witness when it has become stable first.
type witnessed struct {
	types.WritableFile
	files *files
	name  string
	size  int64

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
	f, err := w.files.root.OpenFile(witness(w.name), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := syncDir(w.files.root); err != nil {
		return err
	}
	w.made = true
	return w.files.keep(w.name)
}

// explain adds to an error why there is no next file.
func (f *files) explain(err error) error {
	if why := f.failed.Load(); why != nil {
		err = errors.Join(*why, err)
	}
	return err
}
