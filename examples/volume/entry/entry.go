// Package entry has the entries of a volume's log: what each one changes on the disk.
//
// The data of a large write is not in its entry but in a slot of the journal, which the
// entry names.
package entry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"sync/atomic"
)

// Op is what an entry does.
type Op uint8

// The operations.
const (
	None  Op = iota // an entry of the engine's own; it changes nothing
	Write           // writes the data that is in a slot
	Small           // writes the data that is in the entry
	Zero            // makes a range read as zeros
	Check           // changes nothing; each replica notes what its disk is then
)

// Unit divides offsets and lengths: the smallest block of an NVMe disk.
const Unit = 512

// Entry is one change of the disk. Offsets and lengths are in bytes.
type Entry struct {
	Op   Op
	Off  uint64
	Len  uint32
	Slot uint32 // of a Write
	CRC  uint32 // of all else that it says, and of its data; see Sealed
	Data []byte // of a Small, Len bytes

	proven bool // see Proven
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum is the CRC-32C of data.
func Sum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// Sealed is the entry with the CRC of what it says and of its data, for a Write that of the slot.
func (e Entry) Sealed(data []byte) Entry {
	e.CRC = e.sum(data)
	return e
}

// Right reports whether the CRC is that of what the entry says and of its data.
func (e *Entry) Right(data []byte) bool { return e.proven || e.CRC == e.sum(data) }

// Proven is the entry whose CRC and data were found right since they came: Right does not sum them again.
func (e Entry) Proven() Entry {
	e.proven = true
	return e
}

var passes atomic.Uint64

// Passes is how often this process has summed the data of an entry.
func Passes() uint64 { return passes.Load() }

// sum is the CRC. That of an entry that writes nothing is 0.
func (e *Entry) sum(data []byte) uint32 {
	if e.Op == None || e.Op == Check {
		return 0
	}
	if len(data) != 0 {
		passes.Add(1)
	}
	var head [sealed]byte
	return crc32.Update(Sum(e.head(head[:0])), castagnoli, data)
}

// An entry as bytes, little-endian, the data of a Small behind it. None has no bytes.
//
//	0    1  4    8         16    20   24
//	+----+--+----+---------+-----+----+------
//	| op |0 | len| offset  | slot| crc| data
//	+----+--+----+---------+-----+----+------
const (
	headLen = 24
	sealed  = 20 // of these bytes, in front of the CRC
)

// errEntry is the error of bytes that are no entry.
var errEntry = errors.New("entry: malformed")

// Append appends the entry as bytes.
func (e *Entry) Append(b []byte) []byte {
	if e.Op == None {
		return b
	}
	b = binary.LittleEndian.AppendUint32(e.head(b), e.CRC)
	return append(b, e.Data...)
}

// head appends what is in front of the CRC.
func (e *Entry) head(b []byte) []byte {
	b = append(b, byte(e.Op), 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, e.Len)
	b = binary.LittleEndian.AppendUint64(b, e.Off)
	return binary.LittleEndian.AppendUint32(b, e.Slot)
}

// Parse parses bytes that Append wrote. The data of the entry is a part of b.
func Parse(b []byte) (e Entry, err error) {
	if len(b) == 0 {
		return e, nil
	}
	if len(b) < headLen || b[1]|b[2]|b[3] != 0 {
		return e, errEntry
	}
	e = Entry{
		Op:   Op(b[0]),
		Len:  binary.LittleEndian.Uint32(b[4:]),
		Off:  binary.LittleEndian.Uint64(b[8:]),
		Slot: binary.LittleEndian.Uint32(b[16:]),
		CRC:  binary.LittleEndian.Uint32(b[20:]),
	}
	if data := b[headLen:]; len(data) != 0 {
		e.Data = data
	}
	return e, e.check()
}

// check checks what an entry says of itself.
func (e *Entry) check() error {
	if e.Op == Check && e.Off == 0 && e.Len == 0 && e.Slot == 0 && e.CRC == 0 && e.Data == nil {
		return nil
	}
	if e.Len == 0 || e.Len%Unit != 0 || e.Off%Unit != 0 || e.Off > math.MaxInt64-uint64(e.Len) {
		return fmt.Errorf("%w: %d bytes at %d", errEntry, e.Len, e.Off)
	}
	within, named := 0, e.Op == Write
	switch e.Op {
	case Write, Zero:
	case Small:
		within = int(e.Len)
	default:
		return fmt.Errorf("%w: operation %d", errEntry, e.Op)
	}
	if len(e.Data) != within || !named && e.Slot != 0 {
		return fmt.Errorf("%w: operation %d with slot %d and %d bytes", errEntry, e.Op, e.Slot, len(e.Data))
	}
	return nil
}
