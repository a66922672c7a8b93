//go:build !wasip1

package raftlog

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
)

// walDir is the write-ahead log in a directory.
type walDir struct {
	*wal.WAL
	files *files
}

// indexName is the name of the log's index.
const indexName = metadb.FileName

// Close implements Medium.
func (f walDir) Close() error { return errors.Join(f.WAL.Close(), f.files.root.Close()) }

// StoreLogs implements Medium.
func (f walDir) StoreLogs(all []*raft.Log) error {
	if err := f.WAL.StoreLogs(all); err != nil {
		return f.files.explain(err)
	}
	return nil
}

// openWAL opens the write-ahead log in a directory. Its index is a database that panics, or is read behind its end, where
// it is damaged.
func openWAL(dir string, cfg Config) (_ Medium, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, root.Close())
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("%s is damaged (%v): %w", indexName, what, ErrLost)
		}
	}()
	f, err := openWhole(dir, root, cfg)
	if err != nil {
		return nil, err
	}
	if err := Same(root, dir); err != nil { // the index is opened by its path
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// openWhole is openWAL for files that are not damaged.
func openWhole(dir string, root *os.Root, cfg Config) (Medium, error) {
	if cfg.Files == nil {
		cfg.Files = rooted{root}
	}
	cfg.Segment = cmp.Or(cfg.Segment, Segment)
	if info, err := root.Stat(indexName); cfg.Made && (err != nil || info.Size() == 0) {
		return nil, fmt.Errorf("%s: %w", indexName, errors.Join(ErrLost, err))
	}
	meta := new(metadb.BoltMetaDB)
	if err := mend(dir, root, cfg.Files, meta, cfg.Segment); err != nil {
		return nil, errors.Join(err, meta.Close())
	}
	f := &files{VFS: cfg.Files, root: root, meta: meta}
	if err := f.whole(dir); err != nil {
		return nil, errors.Join(err, meta.Close())
	}
	w, err := wal.Open(dir, wal.WithLogger(hclog.NewNullLogger()), wal.WithMetaStore(meta),
		wal.WithSegmentFiler(segment.NewFiler(dir, f)), wal.WithSegmentSize(cfg.Segment))
	if err != nil {
		return nil, errors.Join(err, meta.Close())
	}
	return walDir{w, f}, nil
}
