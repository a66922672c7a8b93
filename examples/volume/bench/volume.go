package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"godat/examples/nvmeof/store"
	"godat/examples/nvmeof/target"
	"godat/examples/volume/journal"
	"godat/examples/volume/node"
	"godat/examples/volume/raftlog"
	"godat/examples/volume/state"
	dat "godat/runtime"
)

// layout is that of a volume's journals.
var layout = journal.Layout{Nodes: nodes, Slots: 64, SlotSize: 1 << 20}

// volume is a node of a volume.
type volume struct {
	ia     *dat.IA
	node   *node.Node
	device *node.Device
	end    context.CancelFunc
	ran    chan error
	files
}

// files are a node's files.
type files struct {
	log           *raftlog.Log
	disk, journal store.Store
}

func openFiles(s settings, l journal.Layout) (f files, err error) {
	log := filepath.Join(s.Dir, "log")
	if err := os.MkdirAll(log, 0o700); err != nil {
		return f, err
	}
	if f.log, err = raftlog.Open(log, raftlog.Config{}); err != nil {
		return f, err
	}
	if err = f.log.SetMembers(s.Peers); err == nil {
		f.disk, err = store.OpenFile(filepath.Join(s.Dir, "disk"), state.Size(s.Size))
	}
	if err == nil {
		f.journal, err = store.OpenStaged(filepath.Join(s.Dir, "journal"), l.Size())
	}
	if err != nil {
		return f, errors.Join(err, f.closeFiles())
	}
	return f, nil
}

func (f *files) closeFiles() error {
	errs := []error{f.log.Close()}
	for _, s := range []store.Store{f.disk, f.journal} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

func openVolume(ctx context.Context, s settings) (commits, error) {
	v := &volume{ran: make(chan error, 1)}
	var err error
	if v.files, err = openFiles(s, layout); err != nil {
		return nil, err
	}
	if v.ia, err = dat.Open(ctx, s.Provider); err != nil {
		return nil, errors.Join(err, v.closeFiles())
	}
	v.node, err = node.Open(ctx, v.ia, node.Config{
		ID: s.ID, Addr: s.Peers[s.ID].Addr, Peers: s.Peers, Layout: layout, Journal: v.journal, Disk: v.disk, Log: v.log,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: s.Log})),
	})
	if err != nil {
		return nil, errors.Join(err, v.ia.Close(), v.closeFiles())
	}
	v.device = v.node.Device()
	ctx, v.end = context.WithCancel(ctx)
	go v.run(ctx)
	return v, nil
}

// run is the goroutine of the node.
func (v *volume) run(ctx context.Context) { v.ran <- v.node.Run(ctx) }

func (v *volume) writer() func(off int, data []byte) error {
	w, answer := target.NewWrite()
	return func(off int, data []byte) error {
		w.Offset, w.Len = off, len(data)
		v.device.Place(w)
		if err := answer(); err != nil {
			return err
		}
		copy(v.device.Data(w), data)
		v.device.Take(w)
		return answer()
	}
}

func (v *volume) status() (leads bool, term uint64) {
	s := v.node.Status()
	return s.State == "optimized", s.Term
}

func (v *volume) rebuilt() (times, bytes int) {
	s := v.node.Status()
	return int(s.Counts.Rebuilds), int(s.Counts.RebuiltBytes)
}

func (v *volume) whole() bool {
	s := v.node.Status()
	for id, p := range s.Replicas {
		if id != s.ID && (p.Out || p.Silent || !p.Follows()) {
			return false
		}
	}
	return len(s.Replicas) == nodes
}

func (v *volume) close() error {
	v.end()
	return errors.Join(<-v.ran, v.ia.Close(), v.closeFiles())
}
