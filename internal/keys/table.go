package keys

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// MaxEntries is the most entries a table can have: index 0 is never used, so
// that no key is 0 or small.
const MaxEntries = 1<<24 - 1

const (
	genBits   = 8
	genMask   = 1<<genBits - 1
	chunkBits = 9
	chunkLen  = 1 << chunkBits
	// A removed index rests until this many others were removed after it, for
	// as long as there are indexes never used: a key that somebody still holds
	// by mistake is dead, instead of naming the next thing registered.
	rest = 64
)

// ErrFull is returned when every entry is in use.
var ErrFull = errors.New("godat: key table is full")

// Table maps keys to values of type T, which it keeps. Lookup may be called
// from any goroutine at any time; Insert and Remove may too, and exclude each
// other.
type Table[T any] struct {
	// Immutable after New; what the pointers point to is published atomically.
	dir []atomic.Pointer[chunk[T]]
	max uint32

	mu    sync.Mutex
	live  int
	fresh uint32   // indexes never used yet
	next  uint32   // the next of them
	freed []uint32 // keys removed, oldest first from head
	head  int
}

type chunk[T any] [chunkLen]atomic.Pointer[entry[T]]

// entry is immutable once published. A slot used again gets a new entry, so
// that whoever looked up the old one still sees the old value.
type entry[T any] struct {
	val T
	key uint32
}

// New makes a table for up to max entries; MaxEntries is the most it takes, and
// more than that, as a device without a limit reports, means that many. It panics
// if max is not positive. Memory grows with the entries in use, but for 8 bytes
// for each 512 of max.
func New[T any](max int) *Table[T] {
	if max < 1 {
		panic(fmt.Sprintf("keys: a table of %d entries", max))
	}
	max = min(max, MaxEntries)
	return &Table[T]{
		dir:   make([]atomic.Pointer[chunk[T]], max>>chunkBits+1),
		max:   uint32(max),
		fresh: uint32(max),
		next:  1 + random()%uint32(max),
	}
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
	i := key >> genBits
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
	i := key >> genBits
	t.dir[i>>chunkBits].Load()[i%chunkLen].Store(nil)
	t.freed = append(t.freed, key)
	t.live--
	return true
}

// Set gives a key another value, and reports whether it was alive. A Lookup that
// begins after Set returned finds the new value; who found the old one before
// keeps it.
func (t *Table[T]) Set(key uint32, value T) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Lookup(key) == nil {
		return false
	}
	i := key >> genBits
	t.dir[i>>chunkBits].Load()[i%chunkLen].Store(&entry[T]{val: value, key: key})
	return true
}

// Len is how many entries are in use.
func (t *Table[T]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}

// take picks a free index and the key it gets.
func (t *Table[T]) take() (uint32, *atomic.Pointer[entry[T]], error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	resting := len(t.freed) - t.head
	var key uint32
	switch {
	case resting > rest, resting > 0 && t.fresh == 0:
		key = t.reuse()
	case t.fresh > 0:
		key = t.next<<genBits | random()&genMask
		t.fresh--
		if t.next++; t.next > t.max {
			t.next = 1
		}
	default:
		return 0, nil, ErrFull
	}
	t.live++
	i := key >> genBits
	c := t.dir[i>>chunkBits].Load()
	if c == nil {
		c = new(chunk[T])
		t.dir[i>>chunkBits].Store(c)
	}
	return key, &c[i%chunkLen], nil
}

// reuse takes the index that has rested longest. Counting the generation up
// keeps a key from coming back for as long as 8 bits allow.
func (t *Table[T]) reuse() uint32 {
	old := t.freed[t.head]
	t.head++
	if t.head > len(t.freed)/2 {
		n := copy(t.freed, t.freed[t.head:])
		t.freed, t.head = t.freed[:n], 0
	}
	return old&^genMask | (old+1)&genMask
}

func random() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint32(b[:])
}
