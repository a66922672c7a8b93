//go:build !wasip1

package raftlog

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// mend makes a log as a crash may have left it one that goes on. What is in its files becomes stable: a
// process that was killed may have left it in the system's memory. A tail that is sealed, all of it or not,
// and has no successor, which the write-ahead log can't append to, is copied.
func mend(dir string, files types.VFS, meta *metadb.BoltMetaDB) error {
	if err := renewIndex(filepath.Join(dir, "wal-meta.db")); err != nil {
		return err
	}
	if err := syncAll(dir, files); err != nil {
		return err
	}
	state, err := meta.Load(dir)
	if err != nil {
		return err
	}
	last := len(state.Segments) - 1
	if last < 0 || !state.Segments[last].SealTime.IsZero() {
		return nil
	}
	tail := state.Segments[last]
	if err := renew(dir, files, segment.FileName(tail)); err != nil {
		return err
	}
	again, err := copyTail(segment.NewFiler(dir, files), tail, state.NextSegmentID)
	if err != nil || again.ID == tail.ID {
		return err
	}
	state.Segments[last] = again
	state.NextSegmentID++
	return meta.CommitState(state)
}

// renew writes what a file has once more, and makes it stable: of what could not be made stable once, the system may
// have the bytes, and take them for written.
func renew(dir string, files types.VFS, name string) (err error) {
	from, err := files.OpenReader(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := files.OpenWriter(dir, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if err := copyUsed(to, from); err != nil {
		return err
	}
	return to.Sync()
}

// copyUsed copies pages that are not zeros to the same place of a file.
func copyUsed(to io.WriterAt, from io.ReaderAt) error {
	b, zeros := make([]byte, 4096), make([]byte, 4096)
	for off := int64(0); ; off += int64(len(b)) {
		n, err := from.ReadAt(b, off)
		if n != 0 && !bytes.Equal(b[:n], zeros[:n]) {
			if _, err := to.WriteAt(b[:n], off); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// renewIndex is renew for the log's index, which nobody has open.
func renewIndex(path string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := copyUsed(f, f); err != nil {
		return err
	}
	return f.Sync()
}

// syncAll makes the log's files stable, and that they are there.
func syncAll(dir string, files types.VFS) error {
	names, err := files.ListDir(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if filepath.Ext(name) != ".wal" {
			continue
		}
		f, err := files.OpenWriter(dir, name)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// copyTail copies a tail that is sealed to a file of another id, which has more room. Without need it
// returns the tail.
func copyTail(filer *segment.Filer, tail types.SegmentInfo, id uint64) (again types.SegmentInfo, err error) {
	whole := tail
	whole.MinIndex = whole.BaseIndex
	from, err := filer.RecoverTail(whole)
	if errors.Is(err, fs.ErrNotExist) {
		return tail, nil
	}
	if err != nil {
		return tail, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if sealed, _, err := from.Sealed(); err != nil || !sealed {
		return tail, err
	}
	again = tail
	again.ID = id
	again.SizeLimit *= 2
	if err := filer.Delete(again.BaseIndex, id); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return tail, err
	}
	var entries []types.LogEntry
	for index := tail.BaseIndex; index <= from.LastIndex(); index++ {
		b, err := from.GetLog(index)
		if err != nil {
			return tail, err
		}
		entries = append(entries, types.LogEntry{Index: index, Data: append([]byte(nil), b.Bs...)})
		if err := b.Close(); err != nil {
			return tail, err
		}
	}
	to, err := filer.Create(again)
	if err != nil {
		return tail, err
	}
	return again, errors.Join(to.Append(entries), to.Close())
}
