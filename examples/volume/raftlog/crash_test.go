package raftlog

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"

	"godat/examples/volume/fault"
	"godat/examples/volume/replica"
)

// crashes are the files of a log. It takes an image of them before and after each change that waits for
// the disk.
type crashes struct {
	fault.Files
	testing.TB
	images []image

	mu        sync.Mutex // the log makes files in a goroutine of its own
	appending []uint64   // the term of each record from index 1 on, when all that is under way is done
	appended  []uint64   // the same, of what is done
}

// image is a log as a crash leaves it.
type image struct {
	disk     fault.Disk
	appended []uint64
}

func (c *crashes) image() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.images = append(c.images, image{copyDisk(c, c.Disk), c.appended})
}

// copyDisk copies a disk.
func copyDisk(t testing.TB, from fault.Disk) (to fault.Disk) {
	to = fault.Disk(filepath.Join(t.TempDir(), "disk"))
	require.NoError(t, os.CopyFS(string(to), os.DirFS(string(from))))
	if _, err := os.Stat(from.Stable()); err == nil {
		require.NoError(t, os.CopyFS(to.Stable(), os.DirFS(from.Stable())))
	} else {
		require.ErrorIs(t, err, fs.ErrNotExist)
	}
	return to
}

// Create implements types.VFS.
func (c *crashes) Create(dir, name string, size uint64) (types.WritableFile, error) {
	c.image()
	f, err := c.Files.Create(dir, name, size)
	c.image()
	return &crashing{f, c}, err
}

type crashing struct {
	types.WritableFile
	c *crashes
}

// Sync implements types.WritableFile.
func (f *crashing) Sync() error {
	f.c.image()
	err := f.WritableFile.Sync()
	f.c.mu.Lock()
	f.c.appended = f.c.appending
	f.c.mu.Unlock()
	f.c.image()
	return err
}

const shortSegment = 1024

// Wherever its process or its machine ends, a log has what was acknowledged, and goes on.
func TestALogGoesOnAfterAnyCrash(t *testing.T) {
	c := &crashes{Files: fault.Files{FS: walfs.New(), Disk: fault.Disk(filepath.Join(t.TempDir(), "disk"))}, TB: t}
	require.NoError(t, os.Mkdir(string(c.Disk), 0o700))
	l, err := Open(string(c.Disk), Config{Files: c, Segment: shortSegment})
	require.NoError(t, err)
	index := uint64(0)
	for i, n := range []int{1, 2, 1, 1, 2} {
		var records []replica.Record
		for range n {
			index++
			records = append(records, long(index, uint64(i+1)))
			c.mu.Lock()
			c.appending = append(c.appending, uint64(i+1))
			c.mu.Unlock()
		}
		require.NoError(t, l.Append(records))
	}
	c.mu.Lock()
	c.appending = c.appending[:index-2]
	c.appended = c.appending
	c.mu.Unlock()
	require.NoError(t, l.Cut(index-1))
	require.NoError(t, l.Begin(2, 2))
	require.NoError(t, l.Append([]replica.Record{long(index-1, 9)}))
	require.NoError(t, l.Close())
	for i, x := range c.images {
		for seed := range uint64(3) {
			t.Run(fmt.Sprint(i, " ", seed), func(t *testing.T) { x.goesOn(t, seed) })
		}
	}
}

// The seal of a file that is full may lie in two sectors, of which a power cut leaves the first one: the log then finds a seal,
// but not by it what it had acknowledged.
func TestALogWhoseSealIsThereInPartGoesOn(t *testing.T) {
	const fill = 4 // records of 188 bytes, behind which the head of the seal ends a sector
	c := &crashes{Files: fault.Files{FS: walfs.New(), Disk: fault.Disk(filepath.Join(t.TempDir(), "disk"))}, TB: t}
	require.NoError(t, os.Mkdir(string(c.Disk), 0o700))
	l, err := Open(string(c.Disk), Config{Files: c, Segment: shortSegment})
	require.NoError(t, err)
	for index := range uint64(fill) {
		c.mu.Lock()
		c.appending = append(c.appending, 1)
		c.mu.Unlock()
		r := long(index+1, 1)
		r.Data = r.Data[:188]
		require.NoError(t, l.Append([]replica.Record{r}))
	}
	require.NoError(t, l.Close())
	copies := 0
	for i, x := range c.images {
		if len(x.appended) != fill-1 {
			continue
		}
		for seed := range uint64(32) {
			t.Run(fmt.Sprint(i, " ", seed), func(t *testing.T) {
				all, err := filepath.Glob(filepath.Join(string(x.goesOn(t, seed)), "00000000000000000001-*[^0].wal"))
				require.NoError(t, err)
				copies += len(all)
			})
		}
	}
	require.NotZero(t, copies, "no seal was there in part, and none of the files was copied")
}

// long is a record of which three fill a file.
func long(index, term uint64) replica.Record {
	return replica.Record{Index: index, Term: term, Stable: index - 1, Data: make([]byte, 300)}
}

// goesOn opens the log after a kill, or for other seeds than 0 after a power cut. What it has then survives
// another power cut. The log is on the disk that it returns.
func (x image) goesOn(t *testing.T, seed uint64) fault.Disk {
	d := copyDisk(t, x.disk)
	r := rand.New(rand.NewPCG(seed, 0))
	if seed != 0 {
		require.NoError(t, d.CutPower(r))
	}
	cfg := Config{Files: fault.Files{FS: walfs.New(), Disk: d}, Segment: shortSegment}
	l, err := Open(string(d), cfg)
	require.NoError(t, err)
	first, last := l.Bounds()
	require.GreaterOrEqual(t, int(last), len(x.appended))
	for index := first; index <= uint64(len(x.appended)); index++ {
		record, err := l.Record(index)
		require.NoError(t, err)
		require.Equal(t, x.appended[index-1], record.Term)
	}
	require.NoError(t, l.Close())
	require.NoError(t, d.CutPower(r))
	l, err = Open(string(d), cfg)
	require.NoError(t, err)
	_, now := l.Bounds()
	require.Equal(t, last, now, "what it had is stable")
	require.NoError(t, l.Append([]replica.Record{long(last+1, 9)}))
	require.NoError(t, l.Close())
	return d
}

func TestALogSaysThatItsDiskIsFullAndGoesOnWhenThereIsRoom(t *testing.T) {
	d := fault.Disk(filepath.Join(t.TempDir(), "disk"))
	require.NoError(t, os.Mkdir(string(d), 0o700))
	cfg := Config{Files: fault.Files{FS: walfs.New(), Disk: d}, Segment: shortSegment}
	l, err := Open(string(d), cfg)
	require.NoError(t, err)
	require.NoError(t, d.Say(fault.Trouble{Full: true}))
	last := uint64(0)
	for ; err == nil; err = l.Append([]replica.Record{long(last+1, 1)}) {
		_, last = l.Bounds()
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, l.Close())
	_, err = Open(string(d), cfg)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, d.Say(fault.Trouble{}))
	l, err = Open(string(d), cfg)
	require.NoError(t, err)
	_, now := l.Bounds()
	require.Equal(t, last, now)
	require.NoError(t, l.Append([]replica.Record{long(last+1, 1)}))
	require.NoError(t, l.Close())
}

// roomy are files of a file system that has so many bytes left.
type roomy struct {
	*walfs.FS
	left int
}

// Create implements types.VFS. Without room there is a file, of no bytes.
func (r *roomy) Create(dir, name string, size uint64) (types.WritableFile, error) {
	if int(size) > r.left {
		f, err := r.FS.Create(dir, name, 0)
		return nil, errors.Join(syscall.ENOSPC, err, f.Close())
	}
	r.left -= int(size)
	return r.FS.Create(dir, name, size)
}

// Delete implements types.VFS.
func (r *roomy) Delete(dir, name string) error {
	info, err := os.Stat(filepath.Join(dir, name))
	if err == nil && info.Size() != 0 {
		r.left += shortSegment
	}
	return r.FS.Delete(dir, name)
}

// A log of two files goes on within their room, wherever its process or its machine has ended.
func TestALogThatIsStartedAgainWantsNoMoreRoom(t *testing.T) {
	c := &crashes{Files: fault.Files{FS: walfs.New(), Disk: fault.Disk(filepath.Join(t.TempDir(), "disk"))}, TB: t}
	require.NoError(t, os.Mkdir(string(c.Disk), 0o700))
	l, err := Open(string(c.Disk), Config{Files: c, Segment: shortSegment})
	require.NoError(t, err)
	for index := range uint64(4) {
		require.NoError(t, l.Append([]replica.Record{long(index+1, 1)}))
	}
	require.NoError(t, l.Close())
	full := 0
	for i, x := range c.images {
		for seed := range uint64(8) {
			d := copyDisk(t, x.disk)
			if seed != 0 {
				require.NoError(t, d.CutPower(rand.New(rand.NewPCG(seed, 0))))
			}
			all, err := filepath.Glob(filepath.Join(string(d), "*.wal"))
			require.NoError(t, err)
			files := &roomy{walfs.New(), (2 - len(all)) * shortSegment}
			l, err := Open(string(d), Config{Files: files, Segment: shortSegment})
			require.NoError(t, err, "image %d, seed %d", i, seed)
			_, last := l.Bounds()
			if last == 3 && len(all) == 1 {
				full++
			}
			require.NoError(t, l.Append([]replica.Record{long(last+1, 1)}), "image %d, seed %d", i, seed)
			require.NoError(t, l.Close())
		}
	}
	require.NotZero(t, full, "a full file without a successor")
}

func TestALogDoesNotBeginInAFileThatHasNoRoom(t *testing.T) {
	files := &roomy{walfs.New(), shortSegment}
	cfg, dir := Config{Files: files, Segment: shortSegment}, t.TempDir()
	l, err := Open(dir, cfg)
	require.NoError(t, err)
	last := uint64(0)
	for ; err == nil; err = l.Append([]replica.Record{long(last+1, 1)}) {
		_, last = l.Bounds()
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, l.Close())
	_, err = Open(dir, cfg)
	require.ErrorIs(t, err, syscall.ENOSPC)
	files.left = shortSegment
	l, err = Open(dir, cfg)
	require.NoError(t, err)
	require.NoError(t, l.Append([]replica.Record{long(last+1, 1)}))
	require.NoError(t, l.Close())
}
