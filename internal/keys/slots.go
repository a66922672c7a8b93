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
	// Smallest is the lowest key: none is 0, and none what somebody who counts
	// comes by first.
	Smallest = 256
	// Rest is how many keys are removed after a key until it may be drawn again.
	// A key that somebody still holds by mistake is dead, instead of naming the
	// next thing registered.
	Rest = 1024

	leastSlots = 64
)

// ErrFull is returned when every entry is in use.
var ErrFull = errors.New("godat: key table is full")

// Slots draws the keys of a table, and finds its entries by them. It is an array
// of keys with pointers, as long as a power of two: a key lies at the place that its
// low bits name, or behind it if others have come first, and between the two no
// place is empty.
//
// Find may be called by anybody at any time. The table's lock guards the other
// methods.
type Slots[E any] struct {
	array unsafe.Pointer // to a []slot; it is replaced when it gets too full

	draw    func() uint32
	max     int
	live    int
	used    int      // slots that are not empty
	resting []uint32 // removed keys: a ring once it has Rest of them
	oldest  int      // in resting
}

// slot is where an entry is found. A slot that has had a key is never empty again,
// or a lookup would stop there and miss what lies behind it. It is given another key
// only after its own has rested, and gets the entry first.
type slot struct {
	entry unsafe.Pointer // nil if the key is dead
	key   uint32
}

// What a slot has in the place of a key: numbers that are none.
const (
	empty = 0
	spare = 1 // its key has rested
)

// Init makes slots for up to max entries; MaxEntries is the most they take, and
// more than that, as a device without a limit reports, means that many. It panics
// if max is not positive.
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

// Find returns the entry of a key, or nil if the key is dead or never was. An entry
// that was removed meanwhile may be returned, and one that is another key's by then
// if removed keys have rested since: an entry has its key in it, and the caller
// compares.
func (s *Slots[E]) Find(key uint32) *E {
	// The functions, since methods leave marks of themselves where they are
	// inlined, which are instructions.
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

// Draw returns a key for Insert; with every entry in use it is ErrFull.
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

// Insert enters what Draw returned a key for, under the same hold of the lock.
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

// place is the slot that has the key, or else the one that it would get.
func (s *Slots[E]) place(key uint32) *slot { return place(s.slots(), key) }

func place(a []slot, key uint32) *slot {
	var first *slot // of the spare ones
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

// renew makes an array of at least three slots for each of n keys, and takes over
// what is live or rests. A Find that still looks into the old one finds the same
// entries there.
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
