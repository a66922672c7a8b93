//go:build !wasip1

package fault

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"

	"godat/examples/nvmeof/store"
)

// Disk is a directory whose files lose power, are slow, and fail when a test says so, which may be another
// process. Beside the directory it has a file with its trouble, and for each file what is stable of it.
type Disk string

// Trouble is what a disk suffers.
type Trouble struct {
	Slow         time.Duration // of each flush
	Full, Broken bool
}

func (d Disk) news() string { return string(d) + ".trouble" }

// Say tells a disk what it suffers from now on.
func (d Disk) Say(t Trouble) error {
	b, err := json.Marshal(t)
	if err == nil {
		err = os.WriteFile(d.news()+".new", b, 0o600)
	}
	if err != nil {
		return err
	}
	return os.Rename(d.news()+".new", d.news())
}

// trouble is what Say said last.
func (d Disk) trouble() (t Trouble, err error) {
	b, err := os.ReadFile(d.news())
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	return t, err
}

// flush is what each flush begins with.
func (d Disk) flush() error {
	t, err := d.trouble()
	time.Sleep(t.Slow)
	if err == nil && t.Broken {
		err = ErrDisk
	}
	return err
}

// Stable is the directory of what is stable.
func (d Disk) Stable() string { return string(d) + ".stable" }

// stable is the file with what is stable of a file.
func (d Disk) stable(path string) string {
	return filepath.Join(d.Stable(), strings.TrimPrefix(path, string(d)))
}

// keep makes bytes of a file stable.
func (d Disk) keep(path string, b []byte, off int) error {
	name := d.stable(path)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(name), 0o700); err == nil {
			f, err = os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
		}
	}
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, int64(off))
	return errors.Join(err, f.Close())
}

// CutPower cuts the power of a disk that no process has open: what is not stable is lost, all of it or
// some. A file that has nothing stable may be lost altogether.
func (d Disk) CutPower(r *rand.Rand) error {
	some := r.IntN(2) == 0
	return filepath.WalkDir(string(d), func(path string, e fs.DirEntry, err error) error {
		whole := e != nil && (e.IsDir() || strings.HasSuffix(path, ".db") || strings.HasSuffix(path, ".json"))
		if err != nil || whole { // those take care of themselves
			return err
		}
		now, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		then, err := os.ReadFile(d.stable(path))
		if errors.Is(err, fs.ErrNotExist) && r.IntN(2) == 0 {
			return os.Remove(path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		then = append(then, make([]byte, max(0, len(now)-len(then)))...)
		for at := 0; at < len(now); at += sector {
			if end := min(at+sector, len(now)); !some || r.IntN(2) == 0 {
				copy(now[at:end], then[at:end])
			}
		}
		return errors.Join(os.WriteFile(path, now, 0o600), d.keep(path, now, 0))
	})
}

// sector is what a disk writes as a whole.
const sector = 512

// Flip flips a bit of a byte of a file, which no process has open.
func (d Disk) Flip(path string, off int) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	b[off] ^= 0x10
	return errors.Join(os.WriteFile(path, b, 0o600), d.keep(path, b[off:off+1], off))
}

// Clear makes bytes of a file zeros, which no process has open.
func (d Disk) Clear(path string, off, n int) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	clear(b[off:][:n])
	return errors.Join(os.WriteFile(path, b, 0o600), d.keep(path, b[off:][:n], off))
}

// OpenStore is store.OpenFile for a file of the directory.
func (d Disk) OpenStore(path string, size int) (store.Store, error) {
	s, err := store.OpenFile(path, size)
	if err != nil {
		return nil, err
	}
	return &mapped{s.(written), d, path}, nil
}

// OpenStaged is store.OpenStaged for a file of the directory.
func (d Disk) OpenStaged(path string, size int) (store.Staged, error) {
	s, err := store.OpenStaged(path, size)
	if err != nil {
		return nil, err
	}
	return &staged{Staged: s, disk: d, path: path}, nil
}

// staged is a file of a disk that is staged. Its goroutine alone stages and flushes.
type staged struct {
	store.Staged
	disk   Disk
	path   string
	ranges [][2]int // that were staged since the last flush
}

// Stage implements store.Staged.
func (s *staged) Stage(off, n int) error {
	s.ranges = append(s.ranges, [2]int{off, n})
	return s.Staged.Stage(off, n)
}

// Flush implements store.Store.
func (s *staged) Flush(off, n int) error {
	err := s.disk.flush()
	if err == nil {
		err = s.Staged.Flush(off, n)
	}
	for _, r := range append(s.ranges, [2]int{off, n}) {
		if err == nil {
			err = s.disk.keep(s.path, s.Memory()[r[0]:][:r[1]], r[0])
		}
	}
	s.ranges = nil
	return err
}

// mapped is a file of a disk.
type mapped struct {
	written
	disk Disk
	path string
}

// written is a store that store.OpenFile has opened.
type written interface {
	store.Store
	io.WriterAt
}

// Flush implements store.Store.
func (m *mapped) Flush(off, n int) error {
	err := m.disk.flush()
	if err == nil {
		err = m.written.Flush(off, n)
	}
	if err == nil {
		err = m.disk.keep(m.path, m.Memory()[off:off+n], off)
	}
	return err
}

// Files are the files of a disk's logs.
type Files struct {
	*walfs.FS
	Disk Disk
}

// Create implements types.VFS.
func (v Files) Create(dir, name string, size uint64) (types.WritableFile, error) {
	if t, err := v.Disk.trouble(); err != nil || t.Full {
		return nil, errors.Join(err, syscall.ENOSPC)
	}
	f, err := v.FS.Create(dir, name, size)
	return v.file(f, err, dir, name)
}

// OpenWriter implements types.VFS.
func (v Files) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := v.FS.OpenWriter(dir, name)
	return v.file(f, err, dir, name)
}

// Delete implements types.VFS.
func (v Files) Delete(dir, name string) error {
	if err := os.Remove(v.Disk.stable(filepath.Join(dir, name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return v.FS.Delete(dir, name)
}

func (v Files) file(f types.WritableFile, err error, dir, name string) (types.WritableFile, error) {
	if err != nil {
		return nil, err
	}
	return &logFile{f, v.Disk, filepath.Join(dir, name)}, nil
}

// logFile is a file of a log. It is short, and all of it becomes stable.
type logFile struct {
	types.WritableFile
	disk Disk
	path string
}

// Sync implements types.WritableFile.
func (f *logFile) Sync() error {
	err := f.disk.flush()
	if err == nil {
		err = f.WritableFile.Sync()
	}
	if err != nil {
		return err
	}
	b, err := os.ReadFile(f.path)
	if err == nil {
		err = f.disk.keep(f.path, b, 0)
	}
	return err
}
