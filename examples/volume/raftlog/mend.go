//go:build !wasip1

package raftlog

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// mend makes a log as a crash may have left it one that goes on. What is in its files becomes stable: a
// process that was killed may have left it in the system's memory. A tail that is sealed, all of it or not,
// and has no successor, which the write-ahead log can't append to, gets one, or is copied. A successor is of so many bytes.
func mend(dir string, root *os.Root, files types.VFS, meta *metadb.BoltMetaDB, size int) error {
	if err := renewIndex(root); err != nil {
		return err
	}
	if err := syncAll(dir, root, files); err != nil {
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
	all, err := succeed(segment.NewFiler(dir, files), tail, types.SegmentInfo{ID: state.NextSegmentID, SizeLimit: uint32(size)})
	if err != nil || all == nil {
		return err
	}
	state.Segments = append(state.Segments[:last], all...)
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
func renewIndex(root *os.Root) (err error) {
	f, err := root.OpenFile(indexName, os.O_RDWR, 0)
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
func syncAll(dir string, root *os.Root, files types.VFS) error {
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
	return syncDir(root)
}

// succeed is what takes the place of a tail that is sealed: the same with a successor, whose file is made with the others', or a
// copy if the seal is there in part. Neither wants more room than a log that goes on. Without need it is nothing.
func succeed(filer *segment.Filer, tail, next types.SegmentInfo) (all []types.SegmentInfo, err error) {
	whole := tail
	whole.MinIndex = whole.BaseIndex
	from, err := filer.RecoverTail(whole)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	sealed, start, err := from.Sealed()
	if err != nil || !sealed {
		return nil, err
	}
	tail.SealTime, tail.IndexStart, tail.MaxIndex = time.Now(), start, from.LastIndex()
	if tail.MinIndex <= tail.MaxIndex && agrees(filer, tail, from) {
		next.BaseIndex, next.MinIndex, next.Codec, next.CreateTime = tail.MaxIndex+1, tail.MaxIndex+1, tail.Codec, tail.SealTime
		return []types.SegmentInfo{tail, next}, nil
	}
	again := whole
	again.ID, again.MinIndex = next.ID, tail.MinIndex
	return []types.SegmentInfo{again}, copyTail(filer, again, from)
}

// agrees reports whether a file has, by its seal, the records that it has without.
func agrees(filer *segment.Filer, sealed types.SegmentInfo, as types.SegmentWriter) bool {
	r, err := filer.Open(sealed)
	if err != nil {
		return false
	}
	defer r.Close()
	for index := sealed.MinIndex; index <= sealed.MaxIndex; index++ {
		a, err := record(r, index)
		b, errAs := record(as, index)
		if err != nil || errAs != nil || !bytes.Equal(a, b) {
			return false
		}
	}
	return true
}

// record is a record of a file.
func record(from types.SegmentReader, index uint64) ([]byte, error) {
	b, err := from.GetLog(index)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(b.Bs), b.Close()
}

// copyTail copies records to a file.
func copyTail(filer *segment.Filer, again types.SegmentInfo, from types.SegmentWriter) error {
	if err := filer.Delete(again.BaseIndex, again.ID); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var entries []types.LogEntry
	for index := again.BaseIndex; index <= from.LastIndex(); index++ {
		b, err := record(from, index)
		if err != nil {
			return err
		}
		entries = append(entries, types.LogEntry{Index: index, Data: b})
	}
	to, err := filer.Create(again)
	if err != nil {
		return err
	}
	return errors.Join(to.Append(entries), to.Close())
}
