//go:build !wasip1

package raftlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/hashicorp/raft-wal/types"
)

// rooted are the files of a directory that is open: whoever renames it, or puts another one in its place, changes nothing of
// which files these are. The names of directories that the write-ahead log gives mean nothing.
type rooted struct{ root *os.Root }

// ListDir implements types.VFS.
func (r rooted) ListDir(string) ([]string, error) {
	d, err := r.root.Open(".")
	if err != nil {
		return nil, err
	}
	all, err := d.ReadDir(-1)
	var names []string
	for _, e := range all {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, errors.Join(err, d.Close())
}

// Create implements types.VFS.
func (r rooted) Create(_, name string, size uint64) (types.WritableFile, error) {
	f, err := r.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := allocate(f, int64(size)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &rootedFile{File: f, root: r.root}, nil
}

// Delete implements types.VFS.
func (r rooted) Delete(_, name string) error {
	if err := r.root.Remove(name); err != nil {
		return err
	}
	return syncDir(r.root)
}

// OpenReader implements types.VFS.
func (r rooted) OpenReader(_, name string) (types.ReadableFile, error) { return r.root.Open(name) }

// OpenWriter implements types.VFS.
func (r rooted) OpenWriter(_, name string) (types.WritableFile, error) {
	return r.root.OpenFile(name, os.O_RDWR, 0)
}

// rootedFile is a new file. When it has become stable first, so has its name.
type rootedFile struct {
	*os.File
	root *os.Root
	once sync.Once
}

// Sync implements types.WritableFile.
func (f *rootedFile) Sync() error {
	err := f.File.Sync()
	if err == nil {
		f.once.Do(func() { err = syncDir(f.root) })
	}
	return err
}

// syncDir makes the names of a directory's files stable.
func syncDir(root *os.Root) error {
	d, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// errExchanged is the error of a directory in whose place another one came while it was opened.
var errExchanged = errors.New("another directory came in its place while it was opened: open it again")

// Same is an error unless the directory that is open is the one at a path.
func Same(root *os.Root, path string) error {
	here, err := root.Stat(".")
	if err != nil {
		return err
	}
	there, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(here, there) {
		return fmt.Errorf("%s: %w", path, errExchanged)
	}
	return err
}
