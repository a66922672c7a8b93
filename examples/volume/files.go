package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/store"
	"godat/examples/volume/journal"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/state"
)

// files are a node's open files.
type files struct {
	dir           string
	about         about
	journal, disk store.Store
	log           *raftlog.Log
}

// anew is what to do with a directory that can't be served.
const anew = "remove the node from its volume, and add one of another id"

// readAbout reads what a directory says of itself.
func readAbout(dir string) (a about, err error) {
	b, err := os.ReadFile(filepath.Join(dir, "volume.json"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return a, usageError{fmt.Errorf("%w: look whether this is a node's directory; create makes a new volume's, and for a node that has lost its own, replace takes one of another id", err)}
	}
	if err != nil {
		return a, err
	}
	var v struct{ Format int }
	if err := json.Unmarshal(b, &v); err != nil {
		return a, fmt.Errorf("%s/volume.json: %w: %s", dir, err, anew)
	}
	switch {
	case v.Format == 0:
		return a, fmt.Errorf("%s is of a program that gave volumes no identity: nothing in it proves of which volume it is. "+
			"Make the volume anew, with create and its token, and copy the data to it by a host. "+
			"If no node serves it any more, its blocks are in %[1]s/disk from byte %d on", dir, state.Size(0))
	case v.Format != format:
		return a, fmt.Errorf("%s is of format %d, and this program knows %d", dir, v.Format, format)
	}
	if err = json.Unmarshal(b, &a); err != nil {
		return a, fmt.Errorf("%s/volume.json: %w: %s", dir, err, anew)
	}
	a.Layout.Volume = identity.ID(a.Volume)
	return a, nil
}

// openFiles opens a node's directory.
func openFiles(dir string) (f *files, err error) {
	f = &files{dir: dir}
	if f.about, err = readAbout(dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if err = recovered(dir); err != nil {
		return nil, err
	}
	if err = f.exact(dir); err == nil {
		err = f.open(dir, true)
	}
	if err == nil { // nobody begins to recover from here on, and whoever has begun has no lock and goes no further
		err = recovered(dir)
	}
	if err == nil && !journal.Made(f.journal) {
		err = fmt.Errorf("%s/journal has lost its head: %s", dir, anew)
	}
	if err == nil && !state.Made(f.disk) {
		err = fmt.Errorf("%s/disk has lost its marks: %s", dir, anew)
	}
	if err == nil { // from here on the files are those that are open
		err = raftlog.Same(root, dir)
	}
	if err == nil && f.about.Birth == 0 { // it was made when nobody drew one
		f.about.Birth = newBirth()
		err = writeWhole(filepath.Join(dir, "volume.json"), &f.about)
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// recovered is an error if recover has not made the directory that of another volume to the end.
func recovered(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, recovering)); err == nil {
		return fmt.Errorf("%s: recover was interrupted: call it again", dir)
	}
	return nil
}

// exact checks that the files have the length that they were made with.
func (f *files) exact(dir string) error {
	if err := exact(filepath.Join(dir, "journal"), f.about.Layout.Size()); err != nil {
		return err
	}
	return exact(filepath.Join(dir, "disk"), state.Size(f.about.Size))
}

func exact(path string, want int) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", err, anew)
	}
	if err == nil && info.Mode().IsRegular() && info.Size() != int64(want) {
		err = fmt.Errorf("%s has %d bytes, and volume.json says %d: it is a copy that ended early, or of another volume; if nobody has it whole, %s",
			path, info.Size(), want, anew)
	}
	return err
}

// disks is how a node's files are opened. Tests have some that fail.
var disks = struct {
	open    func(path string, size int) (store.Store, error)
	journal func(path string, size int) (store.Staged, error)
	log     raftlog.Config
}{open: store.OpenFile, journal: store.OpenStaged}

// open opens the files, which were made or are made now. The disk may be open.
func (f *files) open(dir string, made bool) (err error) {
	if f.journal, err = disks.journal(filepath.Join(dir, "journal"), f.about.Layout.Size()); err != nil {
		return err
	}
	if err = f.openDisk(dir); err != nil {
		return err
	}
	cfg := disks.log
	cfg.Volume, cfg.Made = identity.ID(f.about.Volume), made
	f.log, err = raftlog.Open(filepath.Join(dir, "log"), cfg)
	return err
}

// openDisk opens the disk, and so locks it.
func (f *files) openDisk(dir string) (err error) {
	if f.disk == nil {
		f.disk, err = disks.open(filepath.Join(dir, "disk"), state.Size(f.about.Size))
	}
	return err
}

func (f *files) close() error {
	var errs []error
	if f.log != nil {
		errs = append(errs, f.log.Close())
	}
	for _, s := range []store.Store{f.journal, f.disk} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// volumes are those that a process serves.
type volumes []*files

// openAll opens the directories of one node.
func openAll(dirs []string) (all volumes, err error) {
	for _, dir := range dirs {
		f, err := openFiles(dir)
		if err != nil {
			return nil, errors.Join(full(dir, busy(dir, err)), all.close())
		}
		all = append(all, f)
		for _, other := range all[:len(all)-1] {
			if a, b := &f.about, &other.about; a.ID != b.ID || a.Subsystem != b.Subsystem || a.Namespace == b.Namespace {
				err := fmt.Errorf("%s: volumes that are served together have one --id, one subsystem (--beside), and each a --namespace", dir)
				return nil, errors.Join(err, all.close())
			}
		}
	}
	return all, nil
}

func (all volumes) close() error {
	var errs []error
	for _, f := range all {
		errs = append(errs, f.close())
	}
	return errors.Join(errs...)
}

// addresses are members as an option has them.
func addresses(all raftlog.Members) (text []string) {
	for _, id := range slices.Sorted(maps.Keys(all)) {
		text = append(text, fmt.Sprintf("%d=%s", id, all[id].Addr))
	}
	return text
}
