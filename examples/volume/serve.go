package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/nvme"
	"godat/examples/nvmeof/store"
	"godat/examples/nvmeof/target"
	"godat/examples/volume/journal"
	"godat/examples/volume/node"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/state"
	dat "godat/runtime"
)

// nodes is the most nodes that a volume ever has, those that were removed included.
const nodes = 8

// about is what a node's directory says of itself, in the file that is made last.
type about struct {
	ID     uint64
	Volume identity.ID
	Size   int
	Layout journal.Layout
}

// identify is the identity that a name makes.
func identify(name string) (id identity.ID) {
	sum := sha256.Sum256([]byte("godat volume\n" + name))
	copy(id[:], sum[:])
	id[6], id[8] = id[6]&0x0f|8<<4, id[8]&0x3f|0x80 // a UUID of version 8
	return id
}

// files are a node's open files.
type files struct {
	about         about
	journal, disk store.Store
	log           *raftlog.Log
}

// openFiles opens a node's directory, and makes it first if that is asked.
func openFiles(o *serveOptions, peers raftlog.Members) (f *files, err error) {
	f = &files{}
	name := filepath.Join(o.Data, "volume.json")
	b, err := os.ReadFile(name)
	switch {
	case err == nil && o.Create:
		return nil, fmt.Errorf("%s: it has a volume already", o.Data)
	case err == nil:
		err = json.Unmarshal(b, &f.about)
	case errors.Is(err, fs.ErrNotExist) && o.Create:
		err = f.describe(o)
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("%w; --create makes a new volume, but never a node's data again: add a node of another id", err)
	}
	if err == nil && f.about.ID != o.ID {
		err = fmt.Errorf("%s is of node %d", o.Data, f.about.ID)
	}
	if err == nil {
		err = f.open(o.Data)
	}
	if err == nil && o.Create {
		err = f.create(name, o.Join, peers)
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

// describe is what is made.
func (f *files) describe(o *serveOptions) error {
	size, err := parseSize(o.Size)
	if err != nil {
		return err
	}
	slot, err := parseSize(o.SlotSize)
	if err != nil {
		return err
	}
	f.about = about{ID: o.ID, Volume: identify(o.Name), Size: size, Layout: journal.Layout{Nodes: nodes, Slots: o.Slots, SlotSize: slot}}
	return os.MkdirAll(filepath.Join(o.Data, "log"), 0o700)
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

// create says who is a member, and then that the directory is whole.
func (f *files) create(name string, join bool, peers raftlog.Members) error {
	if _, self := peers[f.about.ID]; !self {
		return fmt.Errorf("--peers has no node %d", f.about.ID)
	}
	if !join {
		if err := f.log.SetMembers(peers); err != nil {
			return err
		}
	}
	b, err := json.Marshal(f.about)
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

// serve serves until ctx ends.
func serve(ctx context.Context, ia *dat.IA, o *serveOptions, out, log io.Writer) error {
	level := slog.LevelInfo
	if o.Verbose {
		level = slog.LevelDebug
	}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))
	peers, err := parsePeers(o.Peers)
	if err != nil {
		return err
	}
	f, err := openFiles(o, peers)
	if err != nil {
		return err
	}
	m, err := newMachine(ctx, ia, f, o, peers, logger)
	if err != nil {
		return errors.Join(err, f.close())
	}
	fmt.Fprintf(out, "node %d of %s serves hosts on %s\n", o.ID, f.about.Volume.Name(), m.target.Addr())
	return errors.Join(m.run(ctx), f.close())
}

// machine is a node with a target.
type machine struct {
	node   *node.Node
	target *target.Target
}

func newMachine(ctx context.Context, ia *dat.IA, f *files, o *serveOptions, peers raftlog.Members, log *slog.Logger) (m *machine, err error) {
	m = &machine{}
	m.node, err = node.Open(ctx, ia, node.Config{
		ID: o.ID, Addr: peers[o.ID].Addr, Peers: peers, Layout: f.about.Layout, Journal: f.journal, Disk: f.disk, Log: f.log, Logger: log,
		OnState: func(s nvme.ANAState) { _ = m.target.SetANAState(1, s) }, // which is one
	})
	if err != nil {
		return nil, err
	}
	const ids = 8000
	first := uint16(o.ID-1)*ids + 1
	m.target, err = target.New(ctx, ia, target.Config{
		Addr: o.Listen, Subsystem: f.about.Volume.Name(), ControllerIDs: target.IDRange{First: first, Last: first + ids - 1}, Log: log,
		Namespaces: []target.Namespace{{Store: m.node.Device(), ID: f.about.Volume}},
	})
	if err == nil {
		err = errors.Join(m.target.SetANAState(1, nvme.ANAInaccessible), m.target.SetElsewhere(o.Other...))
	}
	if err != nil {
		stopped, stop := context.WithCancel(ctx)
		stop()
		return nil, errors.Join(err, m.run(stopped)) // which closes both
	}
	return m, nil
}

// run serves until ctx ends, or until the node can't go on.
func (m *machine) run(ctx context.Context) error {
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return m.node.Run(ctx) })
	if m.target != nil {
		both.Go(func() error { return m.target.Run(ctx) })
	}
	return both.Wait()
}

var errRebuilt = errors.New("it has been rebuilt since the check began: check again")

// checked waits until a node has checked its disk at an entry.
func checked(ctx context.Context, ia *dat.IA, addr string, index uint64) (state.Checked, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		s, err := node.Ask(ctx, ia, addr, node.Command{Do: "status"})
		switch {
		case err != nil || s.Checked.Index >= index:
			return s.Checked, err
		case s.Applied >= index:
			return s.Checked, errRebuilt
		}
		select {
		case <-ctx.Done():
			return s.Checked, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
