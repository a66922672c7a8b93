//go:build !wasip1

package raftlog

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
)

// walFile is the write-ahead log in a directory.
type walFile struct {
	*wal.WAL
	files *files
}

// StoreLogs implements File.
func (f walFile) StoreLogs(all []*raft.Log) error {
	if err := f.WAL.StoreLogs(all); err != nil {
		return f.files.explain(err)
	}
	return nil
}

// openFiles opens the write-ahead log in a directory. Its index is a database that panics, or is read behind its end, where
// it is damaged.
func openFiles(dir string, cfg Config) (_ File, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("wal-meta.db is damaged (%v): %w", what, ErrLost)
		}
	}()
	return openWhole(dir, cfg)
}

// openWhole is openFiles for files that are not damaged.
func openWhole(dir string, cfg Config) (File, error) {
	if cfg.Files == nil {
		cfg.Files = walfs.New()
	}
	cfg.Segment = cmp.Or(cfg.Segment, Segment)
	if info, err := os.Stat(filepath.Join(dir, "wal-meta.db")); cfg.Made && (err != nil || info.Size() == 0) {
		return nil, fmt.Errorf("wal-meta.db: %w", errors.Join(ErrLost, err))
	}
	meta := new(metadb.BoltMetaDB)
	if err := mend(dir, cfg.Files, meta, cfg.Segment); err != nil {
		return nil, errors.Join(err, meta.Close())
	}
	f := &files{VFS: cfg.Files}
	if err := f.whole(dir, meta); err != nil {
		return nil, errors.Join(err, meta.Close())
	}
	w, err := wal.Open(dir, wal.WithLogger(hclog.NewNullLogger()), wal.WithMetaStore(meta),
		wal.WithSegmentFiler(segment.NewFiler(dir, f)), wal.WithSegmentSize(cfg.Segment))
	if err != nil {
		return nil, errors.Join(err, meta.Close())
	}
	return walFile{w, f}, nil
}
