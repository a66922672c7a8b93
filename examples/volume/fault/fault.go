// Package fault has a store for tests. It loses power and fails when a test says so.
package fault

import (
	"errors"
	"sync/atomic"

	"godat/examples/nvmeof/store"
)

// ErrDisk is the error of a disk that has failed.
var ErrDisk = errors.New("fault: the disk has failed")

// Store is a store that loses what was not flushed when Fail takes its power. What its
// memory had before Fail is what another process finds there after a kill.
type Store struct {
	*store.Forgetful

	doomed  atomic.Bool
	flushes atomic.Int64 // those that succeed still, if it is doomed
}

// New makes a store of size bytes.
func New(size int) *Store {
	f, err := store.NewForgetful(size)
	if err != nil {
		panic(err) // the size is the test's own
	}
	return &Store{Forgetful: f}
}

// FailAfter lets all flushes fail after the next n.
func (s *Store) FailAfter(n int) {
	s.flushes.Store(int64(n))
	s.doomed.Store(true)
}

// Repair ends FailAfter.
func (s *Store) Repair() { s.doomed.Store(false) }

// Flush implements store.Store.
func (s *Store) Flush(off, n int) error {
	if s.doomed.Load() && s.flushes.Add(-1) < 0 {
		return ErrDisk
	}
	return s.Forgetful.Flush(off, n)
}

// Flip flips a bit of a byte, in the memory and on the disk.
func (s *Store) Flip(off int) {
	s.Memory()[off] ^= 0x10
	if err := s.Forgetful.Flush(off, 1); err != nil {
		panic(err) // it is open
	}
}
