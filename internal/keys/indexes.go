package keys

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
)

// MaxEntries is the most entries a table can have: index 0 is never used, so
// that no key is 0 or small.
const MaxEntries = 1<<24 - 1

const (
	genBits = 8
	genMask = 1<<genBits - 1
	// A removed index rests until this many others were removed after it, for
	// as long as there are indexes never used: a key that somebody still holds
	// by mistake is dead, instead of naming the next thing registered.
	rest = 64
)

// ErrFull is returned when every entry is in use.
var ErrFull = errors.New("godat: key table is full")

// Index is the part of a key that is a place in a table.
func Index(key uint32) uint32 { return key >> genBits }

// Indexes gives the keys of a table out and takes them back. A lock of the
// table's guards it.
type Indexes struct {
	max   uint32
	live  int
	fresh uint32   // indexes never used yet
	next  uint32   // the next of them
	freed []uint32 // keys given back, oldest first from head
	head  int
}

// Init makes indexes for up to max entries; MaxEntries is the most they take, and
// more than that, as a device without a limit reports, means that many. It panics
// if max is not positive. The highest index is returned.
func (x *Indexes) Init(max int) uint32 {
	if max < 1 {
		panic(fmt.Sprintf("keys: a table of %d entries", max))
	}
	x.max = uint32(min(max, MaxEntries))
	x.fresh, x.next = x.max, 1+random()%x.max
	return x.max
}

// Take gives a key whose index is free; with every entry in use it is ErrFull.
func (x *Indexes) Take() (key uint32, err error) {
	resting := len(x.freed) - x.head
	switch {
	case resting > rest, resting > 0 && x.fresh == 0:
		key = x.reuse()
	case x.fresh > 0:
		key = x.next<<genBits | random()&genMask
		x.fresh--
		if x.next++; x.next > x.max {
			x.next = 1
		}
	default:
		return 0, ErrFull
	}
	x.live++
	return key, nil
}

// Give gives a key back.
func (x *Indexes) Give(key uint32) {
	x.freed = append(x.freed, key)
	x.live--
}

// Len is how many entries are in use.
func (x *Indexes) Len() int { return x.live }

// reuse takes the index that has rested longest. Counting the generation up
// keeps a key from coming back for as long as 8 bits allow.
func (x *Indexes) reuse() uint32 {
	old := x.freed[x.head]
	x.head++
	if x.head > len(x.freed)/2 {
		n := copy(x.freed, x.freed[x.head:])
		x.freed, x.head = x.freed[:n], 0
	}
	return old&^genMask | (old+1)&genMask
}

func random() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint32(b[:])
}
