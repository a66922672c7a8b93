package keys

import (
	crand "crypto/rand"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"
	"unsafe"
)

const (
	// MaxEntries is the most entries that a table can have.
	MaxEntries = 1<<24 - 1
	// Smallest is the lowest key. So no key is 0, or another of the small numbers that a
	// peer would guess first.
	Smallest = 256
	// Rest is how many other keys are removed after a key was removed, until it may
	// be drawn again. A program that still holds the key by mistake has a dead key,
	// instead of one that names the next thing registered.
	Rest = 1024

	leastSlots = 64
)

// ErrFull is returned when every entry is in use.
var ErrFull = errors.New("godat: key table is full")

// Slots draws the keys of a table, and finds its entries by them. It is an array of
// keys with pointers, whose length is a power of two: a key lies at the place that
// its low bits name, or behind it if other keys came first, and no place between
// the two is empty.
//
// Any goroutine may call Find at any time. The table's lock guards the other
// methods.
type Slots[E any] struct {
	array unsafe.Pointer // to a []slot; it is replaced when it gets too full

	draw    func() uint32
	max     int
	live    int
	used    int      // slots that are not empty
	resting []uint32 // removed keys: a ring once it has Rest of them
	oldest  int      // place in resting of the key that was removed first
}

// slot is where an entry is found. A slot that has had a key is never empty again,
// or a lookup would stop there and miss the keys behind it. A slot gets another key
// only after its own key has rested, and gets the entry before the key.
type slot struct {
	entry unsafe.Pointer // nil if the key is dead
	key   uint32
}

// What a slot has in place of a key: numbers that are not keys.
const (
	empty = 0
	spare = 1 // its key has rested
)

// Init makes slots for up to max entries, but for no more than MaxEntries, because
// a device without a limit reports a higher max. It panics if max is not positive.
func (s *Slots[E]) Init(max int) {
	if max < 1 {
		panic(fmt.Sprintf("keys: a table of %d entries", max))
	}
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // never fails
	rng := rand.NewChaCha8(seed)
	s.draw = func() uint32 { return uint32(rng.Uint64()) }
	s.max = min(max, MaxEntries)
	s.renew(leastSlots)
}

// Find returns the entry of a key, or nil if the key is dead or never was. It may
// return an entry that was removed meanwhile, and even the entry of another key if
// the removed key has rested since: an entry has its key in it, and the caller
// compares.
func (s *Slots[E]) Find(key uint32) *E {
	// Functions of sync/atomic, because its methods add marker instructions where
	// the compiler inlines them.
	a := *(*[]slot)(atomic.LoadPointer(&s.array))
	for i := key; ; i++ {
		at := &a[i&uint32(len(a)-1)]
		switch atomic.LoadUint32(&at.key) {
		case key:
			return (*E)(atomic.LoadPointer(&at.entry))
		case empty:
			return nil
		}
	}
}

// Draw returns a key for Insert, or ErrFull when every entry is in use.
func (s *Slots[E]) Draw() (key uint32, err error) {
	if s.live == s.max {
		return 0, ErrFull
	}
	for {
		key = s.draw()
		if key >= Smallest && atomic.LoadUint32(&s.place(key).key) != key {
			return key, nil
		}
	}
}

// Insert enters e under the key that Draw returned. The caller holds the lock from
// Draw to Insert.
func (s *Slots[E]) Insert(key uint32, e *E) {
	at := s.place(key)
	if at.key == empty {
		if 2*(s.used+1) > len(s.slots()) {
			s.renew(s.live + len(s.resting) + 1)
			at = s.place(key)
		}
		s.used++
	}
	s.live++
	atomic.StorePointer(&at.entry, unsafe.Pointer(e))
	atomic.StoreUint32(&at.key, key)
}

// Remove makes a live key dead. A Find that begins after Remove returned does not
// find it.
func (s *Slots[E]) Remove(key uint32) {
	atomic.StorePointer(&s.place(key).entry, nil)
	s.live--
	if len(s.resting) < Rest {
		s.resting = append(s.resting, key)
		return
	}
	rested := &s.resting[s.oldest]
	atomic.StoreUint32(&s.place(*rested).key, spare)
	*rested = key
	s.oldest = (s.oldest + 1) % Rest
}

// Len is how many entries are in use.
func (s *Slots[E]) Len() int { return s.live }

func (s *Slots[E]) slots() []slot { return *(*[]slot)(s.array) }

// place returns the slot that has the key, or else the one that the key would get.
func (s *Slots[E]) place(key uint32) *slot { return place(s.slots(), key) }

func place(a []slot, key uint32) *slot {
	var first *slot // the first spare slot
	for i := key; ; i++ {
		at := &a[i&uint32(len(a)-1)]
		switch at.key {
		case key:
			return at
		case spare:
			if first == nil {
				first = at
			}
		case empty:
			if first != nil {
				return first
			}
			return at
		}
	}
}

// renew makes an array of at least three slots for each of n keys, and copies the
// live keys and those that rest into it. A Find that still looks into the old array
// finds the same entries there.
func (s *Slots[E]) renew(n int) {
	a := make([]slot, max(leastSlots, 1<<bits.Len(uint(3*n-1))))
	s.used = 0
	if s.array != nil {
		for _, old := range s.slots() {
			if old.key != empty && old.key != spare {
				*place(a, old.key) = old
				s.used++
			}
		}
	}
	atomic.StorePointer(&s.array, unsafe.Pointer(&a))
}
