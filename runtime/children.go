package runtime

import (
	"maps"
	"slices"
)

// minSweep is how many objects an adapter remembers before it drops the closed ones.
const minSweep = 64

// sweep has a value for each object that an adapter remembers, some of which may be closed.
// lists.mu guards it.
type sweep[K comparable, V any] struct {
	of   map[K]V
	at   int     // with so many objects the next one drops those that are closed
	drop func(K) // called with each object that is dropped; nil for none
}

func (s *sweep[K, V]) put(object K, value V) {
	if s.of == nil {
		s.of, s.at = make(map[K]V), minSweep
	}
	if len(s.of) >= s.at {
		s.at = max(minSweep, 2*s.count())
	}
	s.of[object] = value
}

// count drops the closed objects and counts the others.
func (s *sweep[K, V]) count() int {
	maps.DeleteFunc(s.of, func(object K, _ V) bool {
		open := isOpen(object)
		if !open && s.drop != nil {
			s.drop(object)
		}
		return !open
	})
	return len(s.of)
}

// children are the objects of one kind that were made on an adapter.
type children[T comparable] struct {
	sweep[T, struct{}]
	made uint64

	madeBefore, freedBefore uint64 // at the last reset of the counters
}

func (c *children[T]) add(child T) {
	c.put(child, struct{}{})
	c.made++
}

// counts says how many children were made, and how many of them are closed.
func (c *children[T]) counts() (made, freed uint64) { return c.made, c.made - uint64(c.count()) }

// list returns the children, some of which may be closed.
func (c *children[T]) list() []T { return slices.Collect(maps.Keys(c.of)) }
