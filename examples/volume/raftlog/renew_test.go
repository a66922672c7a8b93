package raftlog

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"

	"godat/examples/volume/replica"
)

// amnesia are files of a system that takes pages for written when it could not write them, as Linux does: the files have
// what was written, and after a power cut what was stable.
type amnesia struct {
	*walfs.FS
	sync.Mutex // the log makes files in a goroutine of its own
	broken     bool
	stable     map[string][]byte // by path
	dirty      map[string]map[int64]bool
}

// page is what the system writes as a whole.
const page = 4096

func (a *amnesia) Create(dir, name string, size uint64) (types.WritableFile, error) {
	f, err := a.FS.Create(dir, name, size)
	path := filepath.Join(dir, name)
	a.Lock()
	a.stable[path] = make([]byte, size)
	a.Unlock()
	return a.file(f, err, path)
}

func (a *amnesia) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := a.FS.OpenWriter(dir, name)
	return a.file(f, err, filepath.Join(dir, name))
}

func (a *amnesia) file(f types.WritableFile, err error, path string) (types.WritableFile, error) {
	a.Lock()
	defer a.Unlock()
	if a.dirty[path] == nil {
		a.dirty[path] = make(map[int64]bool)
	}
	return &forgotten{f, a, path}, err
}

func (a *amnesia) breaks(broken bool) {
	a.Lock()
	defer a.Unlock()
	a.broken = broken
}

// cut cuts the power. Nobody has a file open.
func (a *amnesia) cut(t *testing.T) {
	for path, b := range a.stable {
		require.NoError(t, os.WriteFile(path, b, 0o600))
	}
}

type forgotten struct {
	types.WritableFile
	a    *amnesia
	path string
}

func (f *forgotten) WriteAt(b []byte, off int64) (int, error) {
	f.a.Lock()
	defer f.a.Unlock()
	for at := off / page; at <= (off+int64(len(b))-1)/page; at++ {
		f.a.dirty[f.path][at] = true
	}
	return f.WritableFile.WriteAt(b, off)
}

func (f *forgotten) Sync() error {
	f.a.Lock()
	defer f.a.Unlock()
	defer clear(f.a.dirty[f.path])
	if f.a.broken {
		return syscall.EIO
	}
	now, err := os.ReadFile(f.path)
	for at := range f.a.dirty[f.path] {
		copy(f.a.stable[f.path][at*page:], now[at*page:min(int64(len(now)), (at+1)*page)])
	}
	return err
}

func TestWhatALogThatIsOpenHasIsStableAlsoAfterASyncThatFailed(t *testing.T) {
	dir := t.TempDir()
	a := &amnesia{FS: walfs.New(), stable: make(map[string][]byte), dirty: make(map[string]map[int64]bool)}
	open := func() *Log {
		l, err := Open(dir, Config{Files: a, Segment: 64 << 10})
		require.NoError(t, err)
		return l
	}
	l := open()
	require.NoError(t, l.Append([]replica.Record{{Index: 1, Term: 1}}))
	a.breaks(true)
	require.ErrorIs(t, l.Append([]replica.Record{{Index: 2, Term: 1, Data: make([]byte, 3*page)}}), syscall.EIO)
	require.NoError(t, l.Close())
	a.breaks(false)
	l = open()
	_, last := l.Bounds()
	require.Equal(t, uint64(2), last, "the system has it")
	require.NoError(t, l.Close())
	a.cut(t)
	l = open()
	_, after := l.Bounds()
	require.Equal(t, last, after, "an open log may acknowledge what it has")
	require.NoError(t, l.Close())
}
