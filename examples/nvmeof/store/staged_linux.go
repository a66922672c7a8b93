package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// staged is a file whose contents are in memory of its own.
type staged struct {
	// Immutable.
	f    *os.File
	data []byte
	sync func(fd int) error // waits for the disk

	mu     sync.RWMutex // held shared by calls that touch the memory, alone by Close
	closed bool

	failing sync.Mutex
	failed  error // the first one of writing or syncing; guarded by failing
}

// OpenStaged opens a file like OpenFile, but reads it into memory of its own, from which Stage and Flush write it. So a
// device that writes to the memory never writes to a file's pages, which a kernel may refuse to pin for long, or not
// notice; and a part of the file that can't be read or written is an error, and no signal.
func OpenStaged(path string, size int) (Staged, error) {
	f, err := openLocked(path, unix.LOCK_EX)
	if err != nil {
		return nil, err
	}
	s := &staged{f: f.f, sync: unix.Fdatasync}
	if err := s.load(f, size); err != nil {
		return nil, f.abandon(err)
	}
	return s, nil
}

// load reads the file. Pages of zeros take no memory.
func (s *staged) load(f *file, size int) (err error) {
	if size, err = f.measure(size); err != nil {
		return err
	}
	if s.data, err = mapMemory(size); err != nil {
		return err
	}
	b := make([]byte, 64<<10)
	zeros := make([]byte, len(b))
	for off := 0; off < size && err == nil; off += len(b) {
		b = b[:min(len(b), size-off)]
		if _, err = s.f.ReadAt(b, int64(off)); err == nil && !bytes.Equal(b, zeros[:len(b)]) {
			copy(s.data[off:], b)
		}
	}
	if err == nil {
		err = s.f.Sync() // the length and the allocation
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("read it: %w", err), unmapMemory(s.data))
	}
	return err
}

func (s *staged) Memory() []byte { return s.data }

func (s *staged) Volatile() bool { return true }

// Stage implements Staged.
func (s *staged) Stage(off, n int) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	return s.note(s.write(off, n))
}

func (s *staged) write(off, n int) error {
	_, err := s.f.WriteAt(s.data[off:off+n], int64(off))
	return err
}

// Flush writes the range, and makes stable what was staged.
func (s *staged) Flush(off, n int) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	err := s.write(off, n)
	if err == nil {
		err = s.sync(int(s.f.Fd()))
	}
	return s.note(err)
}

// note keeps the first error, and returns it from then on: the system tells one caller of what it could not write.
func (s *staged) note(err error) error {
	s.failing.Lock()
	defer s.failing.Unlock()
	if s.failed == nil && err != nil {
		s.failed = fmt.Errorf("store: %w", err)
	}
	return s.failed
}

func (s *staged) Zero(off, n int) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return ErrClosed
	}
	clear(s.data[off : off+n])
	return nil
}

func (s *staged) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return errors.Join(unmapMemory(s.data), s.f.Close())
}
