package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/store"
	"godat/examples/volume/journal"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/state"
)

// nodes is the most nodes that a volume ever has, those that were removed included.
const nodes = 8

// mostVolumes is the highest namespace id: each has an ANA group.
const mostVolumes = 128

// about is what a node's directory says of itself, in the file that is made last.
type about struct {
	ID        uint64
	Peers     raftlog.Members // at the beginning
	Subsystem identity.ID
	Disk      identity.ID
	Namespace uint32
	Size      int
	Layout    journal.Layout
}

// identify is the identity that a name makes.
func identify(name string) (id identity.ID) {
	sum := sha256.Sum256([]byte("godat volume\n" + name))
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&0x0f|8<<4, id[8]&0x3f|0x80 // a UUID of version 8
	return id
}

// describe says what is created.
func describe(o *volumeOptions) (a about, err error) {
	a = about{
		ID: o.ID, Subsystem: identify(o.Name), Disk: identify(fmt.Sprintf("%s\n%d", o.Name, o.Namespace)), Namespace: o.Namespace,
		Layout: journal.Layout{Nodes: nodes, Slots: o.Slots},
	}
	if a.Size, err = parseSize(o.Size); err != nil {
		return a, err
	}
	if a.Layout.SlotSize, err = parseSize(o.SlotSize); err != nil {
		return a, err
	}
	if a.Peers, err = parsePeers(o.Peers); err != nil {
		return a, err
	}
	if _, self := a.Peers[o.ID]; !self {
		return a, fmt.Errorf("--peers has no node %d", o.ID)
	}
	if o.Namespace < 1 || o.Namespace > mostVolumes {
		return a, fmt.Errorf("namespace %d; it may be 1 to %d", o.Namespace, mostVolumes)
	}
	return a, nil
}

// create makes a node's directory.
func create(o *volumeOptions, dir string) error {
	a, err := describe(o)
	if err != nil {
		return err
	}
	name := filepath.Join(dir, "volume.json")
	if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: it has a volume already", dir)
	}
	if err := os.MkdirAll(filepath.Join(dir, "log"), 0o700); err != nil {
		return err
	}
	f := &files{about: a}
	err = f.open(dir)
	if err == nil && !o.Join {
		err = f.log.SetMembers(a.Peers)
	}
	if err = errors.Join(err, f.close()); err != nil {
		return err
	}
	return a.write(name)
}

// write says that the directory is whole.
func (a *about) write(name string) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	w, err := os.OpenFile(name+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	if err = errors.Join(err, w.Sync(), w.Close()); err != nil {
		return err
	}
	if err := os.Rename(name+".new", name); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// files are a node's open files.
type files struct {
	about         about
	journal, disk store.Store
	log           *raftlog.Log
}

// openFiles opens a node's directory.
func openFiles(dir string) (*files, error) {
	f := &files{}
	b, err := os.ReadFile(filepath.Join(dir, "volume.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; create makes a new volume, but never a node's data again: add a node of another id", err)
	}
	if err == nil {
		err = json.Unmarshal(b, &f.about)
	}
	if err == nil {
		err = f.open(dir)
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// disks is how a node's files are opened. Tests have some that fail.
var disks = struct {
	open func(path string, size int) (store.Store, error)
	log  raftlog.Config
}{open: store.OpenFile}

func (f *files) open(dir string) (err error) {
	if f.journal, err = disks.open(filepath.Join(dir, "journal"), f.about.Layout.Size()); err != nil {
		return err
	}
	if f.disk, err = disks.open(filepath.Join(dir, "disk"), state.Size(f.about.Size)); err != nil {
		return err
	}
	f.log, err = raftlog.Open(filepath.Join(dir, "log"), disks.log)
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
			return nil, errors.Join(err, all.close())
		}
		all = append(all, f)
		for _, other := range all[:len(all)-1] {
			if a, b := &f.about, &other.about; a.ID != b.ID || a.Subsystem != b.Subsystem || a.Namespace == b.Namespace {
				err := fmt.Errorf("%s: volumes that are served together have one --id, one --name, and each a --namespace", dir)
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
