package raftlog

import (
	"os"
	"path/filepath"
	"testing"

	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"godat/examples/volume/replica"
)

// spans are files that note up to where they were written, before the write under way, and what was written beyond that.
type spans struct {
	*walfs.FS
	fresh int // writes that went on where nothing was written yet
}

func (s *spans) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := s.FS.Create(dir, name, size)
	return &span{WritableFile: f, s: s}, err
}

func (s *spans) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := s.FS.OpenWriter(dir, name)
	return &span{WritableFile: f, s: s}, err
}

type span struct {
	types.WritableFile
	s   *spans
	end int64
}

func (f *span) WriteAt(b []byte, off int64) (int, error) {
	if end := off + int64(len(b)); end > f.end {
		f.s.fresh++
		f.end = end
	}
	return f.WritableFile.WriteAt(b, off)
}

func TestARecordIsWrittenWhereZerosWere(t *testing.T) {
	const records, size = 1000, 4096
	dir, s := t.TempDir(), &spans{FS: walfs.New()}
	open := func() *Log {
		l, err := Open(dir, Config{Files: s})
		require.NoError(t, err)
		return l
	}
	l, data := open(), make([]byte, size)
	for i := range data {
		data[i] = byte(i)
	}
	s.fresh = 0
	for i := range uint64(records) {
		require.NoError(t, l.Append([]replica.Record{{Index: i + 1, Term: 1, Data: data}}))
		if i == records/2 {
			require.NoError(t, l.Close())
			fresh := s.fresh
			l = open()
			s.fresh = fresh // a start writes anew what was there
		}
	}
	assert.LessOrEqual(t, s.fresh, 2*(records*size/ahead+4), "records, and zeros behind them")
	require.NoError(t, l.Close())
	l = open()
	_, last := l.Bounds()
	require.Equal(t, uint64(records), last)
	r, err := l.Record(last)
	require.NoError(t, err)
	assert.Equal(t, data, r.Data)
	require.NoError(t, l.Close())
	all, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	require.NoError(t, err)
	for _, name := range all {
		info, err := os.Stat(name)
		require.NoError(t, err)
		assert.Equal(t, int64(64<<20), info.Size(), "zeros make no file longer")
	}
}
