package keys

import (
	"sync"
	"sync/atomic"
)

const (
	chunkBits = 9
	chunkLen  = 1 << chunkBits
)

// Table maps keys to values of type T, which it keeps. Lookup may be called
// from any goroutine at any time; Insert and Remove may too, and exclude each
// other.
type Table[T any] struct {
	// Immutable after New; what the pointers point to is published atomically.
	dir []atomic.Pointer[chunk[T]]

	mu      sync.Mutex
	indexes Indexes
}

type chunk[T any] [chunkLen]atomic.Pointer[entry[T]]

// entry is immutable once published. A slot used again gets a new entry, so
// that whoever looked up the old one still sees the old value.
type entry[T any] struct {
	val T
	key uint32
}

// New makes a table for up to max entries: see [Indexes.Init]. Memory grows with
// the entries in use, but for 8 bytes for each 512 of max.
func New[T any](max int) *Table[T] {
	t := &Table[T]{}
	t.dir = make([]atomic.Pointer[chunk[T]], t.indexes.Init(max)>>chunkBits+1)
	return t
}

// Insert enters what value returns for the new key, and returns the key and
// where the value is kept. With every entry in use it returns ErrFull and value
// is not called. The entry can't be looked up before value has returned.
func (t *Table[T]) Insert(value func(key uint32) T) (uint32, *T, error) {
	key, slot, err := t.take()
	if err != nil {
		return 0, nil, err
	}
	e := &entry[T]{val: value(key), key: key}
	slot.Store(e)
	return key, &e.val, nil
}

// Lookup returns the value of a key, or nil if the key is dead or never was.
// The value outlives its removal; whether it is still in the table when the
// caller uses it is for the caller to settle.
func (t *Table[T]) Lookup(key uint32) *T {
	i := Index(key)
	if uint(i>>chunkBits) >= uint(len(t.dir)) {
		return nil
	}
	c := t.dir[i>>chunkBits].Load()
	if c == nil {
		return nil
	}
	e := c[i%chunkLen].Load()
	if e == nil || e.key != key {
		return nil
	}
	return &e.val
}

// Remove makes a key dead and reports whether it was alive. A Lookup that
// begins after Remove returned does not find it.
func (t *Table[T]) Remove(key uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Lookup(key) == nil {
		return false
	}
	i := Index(key)
	t.dir[i>>chunkBits].Load()[i%chunkLen].Store(nil)
	t.indexes.Give(key)
	return true
}

// Len is how many entries are in use.
func (t *Table[T]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.indexes.Len()
}

// take picks a free index and the key it gets.
func (t *Table[T]) take() (uint32, *atomic.Pointer[entry[T]], error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key, err := t.indexes.Take()
	if err != nil {
		return 0, nil, err
	}
	i := Index(key)
	c := t.dir[i>>chunkBits].Load()
	if c == nil {
		c = new(chunk[T])
		t.dir[i>>chunkBits].Store(c)
	}
	return key, &c[i%chunkLen], nil
}
