package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"go.etcd.io/bbolt"
)

// create makes the file of a store, whole or not at all: it is made under another name, made
// stable, and then gets its own. Of several processes that make it, one does. An empty file,
// which promises nothing, is left to bbolt, which holds its lock meanwhile.
func create(path string) (err error) {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err // it is there, or can't be asked for
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if e := os.Remove(f.Name()); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}()
	if err := f.Close(); err != nil {
		return err
	}
	db, err := bbolt.Open(f.Name(), 0o600, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(db.Update(makeBuckets), db.Close()); err != nil {
		return err
	}
	if err = os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		err = os.Rename(f.Name(), path) // on a file system without links
	} else {
		err = nil
	}
	return errors.Join(err, syncDir(filepath.Dir(path)))
}

// syncDir makes the names of a folder stable.
func syncDir(path string) error {
	if runtime.GOOS == "windows" { // which syncs no folders
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
