package store

import (
	"bytes"
	"math/rand/v2"
	"sync"
)

// Forgetful is a store in memory that loses power on request: it forgets what was not
// flushed. Tests use it.
type Forgetful struct {
	Store

	mu     sync.Mutex
	stable []byte // the contents after a power failure; written by Flush
}

// sector is what a disk writes as a whole.
const sector = 512

// NewForgetful makes a store of size bytes.
func NewForgetful(size int) (*Forgetful, error) {
	m, err := NewMemory(size)
	if err != nil {
		return nil, err
	}
	return &Forgetful{Store: m, stable: make([]byte, size)}, nil
}

// Volatile implements Store.
func (s *Forgetful) Volatile() bool { return true }

// Flush implements Store.
func (s *Forgetful) Flush(off, n int) error {
	if err := s.Store.Flush(off, n); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	copy(s.stable[off:off+n], s.Memory()[off:off+n])
	return nil
}

// Fail is a power failure: each sector that was written and not flushed keeps its new
// contents or has its old ones again, at random, as on a disk that was writing back.
// Nothing may access the memory meanwhile. It returns how many sectors were lost.
func (s *Forgetful) Fail(r *rand.Rand) (lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at := 0; at < len(s.stable); at += sector {
		now, then := s.Memory()[at:min(at+sector, len(s.stable))], s.stable[at:min(at+sector, len(s.stable))]
		switch {
		case bytes.Equal(now, then):
		case r.IntN(2) == 0:
			copy(then, now)
		default:
			copy(now, then)
			lost++
		}
	}
	return lost
}
