package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// file is a file or a block device that is mapped into memory.
type file struct {
	// Immutable.
	f    *os.File
	data []byte
	page int
	made bool                                // by this call
	disk bool                                // a regular file; otherwise a block device
	sync func(pages []byte, flags int) error // writes pages back, and waits

	// The first failure of sync, also of a store that grew out of this one. The system tells of pages that
	// it could not write once, and takes them for written from then on.
	failed *atomic.Pointer[error]

	mu     sync.RWMutex // held shared by calls that touch the memory, alone by Close
	closed bool
}

// OpenFile maps a file or a block device. A regular file that is shorter than size, or
// absent, becomes size bytes long; size 0 takes the file as it is. All its space is
// allocated before OpenFile returns, so that a write through the mapping never lacks
// space, which would be a signal (SIGBUS) and no error. For the same reason nothing else
// may shorten the file: OpenFile locks it (flock) against other stores.
func OpenFile(path string, size int) (Store, error) { return openFile(path, size, unix.LOCK_EX) }

// OpenShared is OpenFile for a file that several stores of this machine have, all of them by
// OpenShared. None of them may shorten it.
func OpenShared(path string, size int) (Store, error) { return openFile(path, size, unix.LOCK_SH) }

func openFile(path string, size, lock int) (Store, error) {
	s, err := openLocked(path, lock)
	if err != nil {
		return nil, err
	}
	if err := s.mapAll(size); err != nil {
		return nil, s.abandon(err)
	}
	return s, nil
}

// openLocked opens and locks a file.
func openLocked(path string, lock int) (*file, error) {
	_, missing := os.Stat(path)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &file{f: f, made: errors.Is(missing, os.ErrNotExist), page: os.Getpagesize(), sync: unix.Msync, failed: new(atomic.Pointer[error])}
	if err := unix.Flock(s.fd(), lock|unix.LOCK_NB); err != nil {
		return nil, s.abandon(fmt.Errorf("another process has it: %w", err))
	}
	return s, nil
}

// abandon closes a file that can't be used, and removes it if it was made for nothing.
func (s *file) abandon(why error) error {
	path := s.f.Name()
	err := errors.Join(fmt.Errorf("store: %s: %w", path, why), s.f.Close())
	if info, gone := os.Stat(path); s.made && gone == nil && info.Size() == 0 {
		err = errors.Join(err, os.Remove(path)) // which this call has made
	}
	return err
}

// mapAll maps all of the file, at least size bytes.
func (s *file) mapAll(size int) error {
	size, err := s.measure(size)
	if err != nil {
		return err
	}
	s.data, err = unix.Mmap(s.fd(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	return s.f.Sync() // the length and the allocation
}

// measure allocates the file's space, at least size bytes, and returns its length.
func (s *file) measure(size int) (int, error) {
	info, err := s.f.Stat()
	if err != nil {
		return 0, err
	}
	s.disk = info.Mode().IsRegular()
	have, err := s.f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	if s.disk {
		size = max(size, int(have))
		if size > 0 {
			err = s.allocate(size, info)
		}
	} else {
		size = int(have)
	}
	if err != nil {
		return 0, fmt.Errorf("allocate %d bytes: %w", size, err)
	}
	if size == 0 {
		return 0, errors.New("it is empty, and no size is given")
	}
	return size, nil
}

// Grown implements Grower. The new store has a descriptor of its own for the same open
// file, and so the same lock.
func (s *file) Grown() (Store, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, ErrClosed
	}
	fd, err := unix.FcntlInt(s.f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("store: %s: %w", s.f.Name(), err)
	}
	g := &file{f: os.NewFile(uintptr(fd), s.f.Name()), page: s.page, sync: s.sync, failed: s.failed}
	if err := g.mapAll(0); err != nil {
		return nil, errors.Join(fmt.Errorf("store: %s: %w", s.f.Name(), err), g.f.Close())
	}
	if len(g.data) <= len(s.data) {
		return nil, g.Close()
	}
	return g, nil
}

func (s *file) fd() int { return int(s.f.Fd()) }

func (s *file) Memory() []byte { return s.data }

func (s *file) Volatile() bool { return true }

// Flush writes back the pages of the range, and waits for the disk. After one that has failed,
// all fail.
func (s *file) Flush(off, n int) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	if n == 0 {
		return nil
	}
	if err := s.sync(s.pages(off, n), unix.MS_SYNC); err != nil {
		s.failed.CompareAndSwap(nil, &err)
	}
	if err := s.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// WriteAt implements io.WriterAt: it writes a range of the memory by a call to the system. Pages of which all is written are not
// read from the disk first, as they are by whoever writes to the memory, and what can't be written is an error, and no signal. It makes no file longer.
func (s *file) WriteAt(b []byte, off int64) (int, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return 0, ErrClosed
	}
	if off < 0 || off > int64(len(s.data)-len(b)) {
		return 0, fmt.Errorf("store: %d bytes at %d of %d", len(b), off, len(s.data))
	}
	if s.disk {
		info, err := s.f.Stat()
		if err == nil && info.Size() < off+int64(len(b)) {
			err = ErrUnreadable
		}
		if err != nil {
			return 0, err
		}
	}
	return s.f.WriteAt(b, off)
}

// pages are the bytes of a range from the beginning of its first page on.
func (s *file) pages(off, n int) []byte { return s.data[off/s.page*s.page : off+n] }

// allocate allocates the space of a file that had what info says, or leaves the file as it was.
func (s *file) allocate(size int, info os.FileInfo) error {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(s.fd(), &fs); err != nil {
		return err
	}
	lacks := int64(size)
	if have, ok := info.Sys().(*syscall.Stat_t); ok {
		lacks -= have.Blocks * 512
	}
	if free := int64(fs.Bavail) * int64(fs.Bsize); lacks > free {
		return fmt.Errorf("%d bytes more are needed, and its file system has %d: make room there, or give another file, or a smaller one: %w", lacks, free, unix.ENOSPC)
	}
	err := allocate(s.fd(), size)
	if err != nil && int64(size) > info.Size() {
		err = errors.Join(err, s.f.Truncate(info.Size())) // what this call has allocated
	}
	return err
}

// allocate allocates the space of a file, piece by piece: a signal interrupts fallocate,
// which then gives back what it has, and Go's runtime sends its threads signals at any time.
func allocate(fd, size int) error {
	const piece = 8 << 20
	for off := 0; off < size; {
		n := min(piece, size-off)
		switch err := unix.Fallocate(fd, 0, int64(off), int64(n)); err {
		case nil:
			off += n
		case unix.EINTR:
		default:
			return err
		}
	}
	return nil
}

// Zero writes zeros through the mapping. The file system's own call for it (fallocate)
// would put other pages in place of those that devices have pinned.
func (s *file) Zero(off, n int) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	return zero(s.data[off : off+n])
}

// Probe implements Prober.
func (s *file) Probe(off, n int, write bool) error {
	return probe(s.pages(off, n), s.page, write)
}

func (s *file) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(unix.Msync(s.data, unix.MS_SYNC), unix.Munmap(s.data), s.f.Close())
}
