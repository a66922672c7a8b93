package identity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Suffix is what the name of the file with a disk's identity has behind that of the disk's
// own file.
const Suffix = ".nvme-id"

// ErrOther says that the identity beside a file is that of another file.
var ErrOther = errors.New("the identity beside it is another file's")

// Kept is the outcome of Keep.
type Kept struct {
	ID   ID
	Path string // where it is kept
	Made bool   // it was made now: hosts see a disk that they don't know
}

// record is what is kept, as JSON.
type record struct {
	ID   string `json:"id"`
	File string `json:"file"` // the mark of the file that has the identity
}

// Keep returns the identity of the file at path. It is kept beside the file that the path
// leads to, so that every path to it finds the same one. A file without an identity gets
// one, and so does a fresh one, which the caller has just made: what is left beside it is
// that of a file that is gone. The caller has locked the file.
//
// The file's mark stands beside the identity, so that a copy of both is found out: Keep then
// returns ErrOther, and keeps nothing. A file that moves within its file system keeps its
// mark. Nothing distinguishes a clone of a whole file system from its original.
//
// What the operator has said, unless it is zero, is kept in place of what was. An error then
// means only that it could not be kept.
func Keep(path string, fresh bool, said ID) (Kept, error) {
	k := Kept{ID: said}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return k, fmt.Errorf("identity: %w", err)
	}
	k.Path = real + Suffix
	mark, names, err := markOf(real)
	if err != nil {
		return k, fmt.Errorf("identity: %s: %w", real, err)
	}
	if said == (ID{}) {
		have, err := load(k.Path)
		switch known := err == nil; {
		case !known && !errors.Is(err, fs.ErrNotExist):
			return k, err
		case known && !fresh && have.File != mark:
			return k, fmt.Errorf("identity: %s: %w: %s is that of %s, and this is %s. If this is a copy, remove %s, and it gets one of its own; "+
				"if it was moved to this file system, serve it once more as %s", real, ErrOther, k.Path, have.File, mark, k.Path, have.ID)
		case known && !fresh:
			k.ID, err = Parse(have.ID)
			return k, err
		case names > 1:
			return k, fmt.Errorf("identity: %s has no identity beside it, and %d names (hard links): serve it by the name that it was served by, or say which", real, names)
		}
		k.ID, k.Made = New(), true
	}
	return k, store(k.Path, record{k.ID.String(), mark})
}

// load reads what is kept at path.
func load(path string) (r record, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("identity: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err = d.Decode(&r); err == nil {
		_, err = Parse(r.ID)
	}
	if err != nil {
		return r, fmt.Errorf("identity: %s is damaged: %w; say which identity the disk has, or remove it, and hosts see another disk", path, err)
	}
	return r, nil
}

// store writes what is kept at path, whole or not at all, and waits for the disk.
func store(path string, r record) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = replace(path, append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("identity: it can't be kept: %w", err)
	}
	return nil
}

func replace(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the names of a folder stable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
