package mem

import (
	"maps"
	"slices"
	"sync"
)

// set has objects of one kind, and counts those that came and went. The zero value is empty.
// Any goroutine may call the methods.
type set[T comparable] struct {
	mu          sync.Mutex // held for a few instructions
	has         map[T]struct{}
	bytes       int64 // of all objects together
	made, freed uint64
}

// add adds v, which has so many bytes.
func (s *set[T]) add(v T, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.has == nil {
		s.has = make(map[T]struct{})
	}
	s.has[v] = struct{}{}
	s.bytes += int64(bytes)
	s.made++
}

// drop takes v out, and reports whether it was there.
func (s *set[T]) drop(v T, bytes int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, has := s.has[v]; !has {
		return false
	}
	delete(s.has, v)
	s.bytes -= int64(bytes)
	s.freed++
	return true
}

// all returns the objects, in any order.
func (s *set[T]) all() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.has))
}

// size returns how many objects there are, and their bytes.
func (s *set[T]) size() (n int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.has), s.bytes
}

// counts returns how many objects came, and how many went.
func (s *set[T]) counts() (made, freed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made, s.freed
}

// anchored has every registered region. A device works on a region even if the program has
// forgotten it, so the garbage collector must not free it: its memory would be used again,
// and a pinner that is collected before Unpin makes the runtime panic.
var anchored set[*LMR]
