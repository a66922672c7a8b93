package keys

import (
	"sync"
	"sync/atomic"
)

// Table maps keys to values of type T, which it keeps. Any goroutine may call its
// methods at any time; Insert and Remove exclude each other.
type Table[T any] struct {
	slots Slots[entry[T]]
	mu    sync.Mutex // guards slots, but for Find
}

// entry is immutable once published, but for the end of its key. A slot that is used
// again gets a new entry, so a goroutine that looked up the old entry still sees the
// old value.
type entry[T any] struct {
	key atomic.Uint64 // with the bit dead, once it is removed
	val T
}

// dead is a bit that no key has.
const dead = 1 << 32

// Near is what the last look-ups found, for the next one, which is often of the same key,
// or of the one before: a server sends messages from one region and data from another. Any
// goroutine may use it at any time; it belongs to one table.
type Near[T any] struct{ found, before atomic.Pointer[entry[T]] }

// Lookup is [Table.Lookup] of the key that [Table.LookupNear] found last in the table. For
// another key it returns nil.
func (n *Near[T]) Lookup(key uint32) *T {
	if e := n.found.Load(); e != nil && e.key.Load() == uint64(key) {
		return &e.val
	}
	return nil
}

// New makes a table for up to max entries: see [Slots.Init]. Memory grows with
// the entries in use.
func New[T any](max int) *Table[T] {
	t := &Table[T]{}
	t.slots.Init(max)
	return t
}

// Insert calls value with a new key, enters what value returns, and returns the key
// and where the value is kept. With every entry in use it returns ErrFull and does
// not call value. The entry can't be looked up before value has returned. value
// must not use the table.
func (t *Table[T]) Insert(value func(key uint32) T) (uint32, *T, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key, err := t.slots.Draw()
	if err != nil {
		return 0, nil, err
	}
	e := &entry[T]{val: value(key)}
	e.key.Store(uint64(key))
	t.slots.Insert(key, e)
	return key, &e.val, nil
}

// Lookup returns the value of a key, or nil if the key is dead or never was. The
// value outlives its removal. A caller that needs the value to be in the table
// still when it uses it has to ensure that.
func (t *Table[T]) Lookup(key uint32) *T {
	if e := t.slots.Find(key); e != nil && e.key.Load() == uint64(key) {
		return &e.val
	}
	return nil
}

// LookupNear is Lookup, and leaves in n what it found unless it is there.
func (t *Table[T]) LookupNear(n *Near[T], key uint32) *T {
	if e := n.before.Load(); e != nil && e.key.Load() == uint64(key) {
		return &e.val
	}
	e := t.slots.Find(key)
	if e == nil || e.key.Load() != uint64(key) {
		return nil
	}
	n.before.Store(n.found.Load())
	n.found.Store(e)
	return &e.val
}

// Remove makes a key dead and reports whether it was alive. A look-up that begins
// after Remove returned does not find it, not even by a Near.
func (t *Table[T]) Remove(key uint32) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.slots.Find(key)
	if e == nil {
		return false
	}
	e.key.Store(dead | uint64(key))
	t.slots.Remove(key)
	return true
}

// Len is how many entries are in use.
func (t *Table[T]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.slots.Len()
}
