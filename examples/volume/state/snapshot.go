package state

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"godat/examples/volume/entry"
)

// Snapshot lists what the blocks were while the list was made, for a replica that has less: the chunks to which an entry
// above Since wrote. All others are those of the replica, which has all up to that one.
type Snapshot struct {
	Index, Term uint64 // of an entry that all chunks have
	Whole       uint64 // the last entry that a chunk may have
	Size        uint64 // of all blocks
	Since       uint64
	Chunks      []Chunk
}

// Chunk is a piece of the blocks. All but the last have chunkLen bytes.
type Chunk struct {
	Off  uint64
	CRC  uint32
	Zero bool // all its bytes are zeros
}

const chunkLen = 64 << 10

// MostChunk is the most bytes that a chunk has.
const MostChunk = chunkLen

// Snapshot lists the chunks to which an entry above one wrote. Entries may be applied meanwhile: it holds none of them
// up for longer than it takes to read a chunk. It stops when the context ends.
func (d *Disk) Snapshot(ctx context.Context, since uint64) (s Snapshot, err error) {
	s.Index, s.Term = d.Applied()
	s.Size, s.Since = uint64(len(d.blocks)), since
	if since > s.Index {
		return Snapshot{}, fmt.Errorf("state: entry %d is asked for, and the disk has entry %d", since, s.Index)
	}
	for off := uint64(0); off < s.Size; off += chunkLen {
		if ctx.Err() != nil {
			return Snapshot{}, context.Cause(ctx)
		}
		c, is, whole, err := d.look(off, since)
		if err != nil {
			return Snapshot{}, err
		}
		if s.Whole = max(s.Whole, whole); is {
			s.Chunks = append(s.Chunks, c)
		}
	}
	return s, nil
}

// Chunk copies the chunk at an offset as it is now, and says which one it is, and the last entry that it may have.
func (d *Disk) Chunk(off uint64, to []byte) (c Chunk, index uint64, err error) {
	if off%chunkLen != 0 || off >= uint64(len(d.blocks)) || len(to) != len(d.chunk(off)) {
		return c, 0, fmt.Errorf("state: no chunk of %d bytes at %d", len(to), off)
	}
	_ = d.see(int(off), len(to)) // it is read while nobody waits, and an error comes again
	d.mu.Lock()
	if err = d.settle(int(off), int(off)+len(to)); err == nil {
		err = d.see(int(off), len(to))
		d.unseen = cmp.Or(d.unseen, err)
	}
	if err == nil {
		copy(to, d.chunk(off))
		err = d.readable()
	}
	index = max(d.applied, d.whole)
	d.mu.Unlock()
	return Chunk{Off: off, CRC: entry.Sum(to)}, index, err
}

// look looks at the chunk at an offset between two entries, if one above since wrote to it. It reads the chunk only for a
// replica that has nothing, and may have it nevertheless.
func (d *Disk) look(off, since uint64) (c Chunk, is bool, index uint64, err error) {
	if since == 0 && d.lacked(off, since) {
		_ = d.see(int(off), len(d.chunk(off))) // it is read while nobody waits, and an error comes again
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if index = max(d.applied, d.whole); d.changed.last[off/chunkLen] <= since {
		return c, false, index, d.readable()
	}
	b := d.chunk(off)
	if since != 0 {
		return Chunk{Off: off, Zero: d.blanks.have(int(off), int(off)+len(b))}, true, index, d.readable()
	}
	if err := d.settle(int(off), int(off)+len(b)); err != nil {
		return c, false, index, err
	}
	if err := d.see(int(off), len(b)); err != nil {
		d.unseen = err
		return c, false, index, err
	}
	return Chunk{off, entry.Sum(b), allZero(b)}, true, index, d.readable()
}

// lacked reports whether an entry above since wrote to the chunk at an offset.
func (d *Disk) lacked(off, since uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed.last[off/chunkLen] > since
}

// readable is nil if the blocks are this replica's. The caller holds the lock.
func (d *Disk) readable() error {
	if d.catching {
		return ErrCatchingUp
	}
	return nil
}

// chunk is the bytes of the chunk at an offset.
func (d *Disk) chunk(off uint64) []byte {
	return d.blocks[off:min(off+chunkLen, uint64(len(d.blocks)))]
}

var zeros [chunkLen]byte

// allZero reports whether b, which is no longer than a chunk, has zeros only.
func allZero(b []byte) bool { return bytes.Equal(b, zeros[:len(b)]) }

const (
	snapshotLen = 40
	chunkBytes  = 12
)

// MostSnapshot is the most bytes that the snapshot of so many bytes of blocks has.
func MostSnapshot(blocks int) int { return snapshotLen + chunksOf(blocks)*chunkBytes }

var errSnapshot = errors.New("state: malformed snapshot")

// Append appends the snapshot as bytes: index, term, whole, size and since, eight bytes each, and for each chunk eight
// of offset, which is odd for one of zeros, and four of CRC; all little-endian.
func (s *Snapshot) Append(b []byte) []byte {
	for _, v := range []uint64{s.Index, s.Term, s.Whole, s.Size, s.Since} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	for _, c := range s.Chunks {
		off := c.Off
		if c.Zero {
			off |= 1
		}
		b = binary.LittleEndian.AppendUint64(b, off)
		b = binary.LittleEndian.AppendUint32(b, c.CRC)
	}
	return b
}

// ParseSnapshot parses bytes that Append wrote.
func ParseSnapshot(b []byte) (s Snapshot, err error) {
	if len(b) < snapshotLen || (len(b)-snapshotLen)%chunkBytes != 0 {
		return s, errSnapshot
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	s = Snapshot{Index: word(0), Term: word(1), Whole: word(2), Size: word(3), Since: word(4)}
	if s.Whole < s.Index || s.Since > s.Index {
		return Snapshot{}, errSnapshot
	}
	next := uint64(0)
	for b = b[snapshotLen:]; len(b) != 0; b = b[chunkBytes:] {
		off := binary.LittleEndian.Uint64(b)
		c := Chunk{off &^ 1, binary.LittleEndian.Uint32(b[8:]), off&1 != 0}
		if c.Off%chunkLen != 0 || c.Off < next || c.Off >= s.Size {
			return Snapshot{}, errSnapshot
		}
		next = c.Off + 1
		s.Chunks = append(s.Chunks, c)
	}
	return s, nil
}
