package state

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"godat/examples/volume/entry"
)

// Snapshot lists what the blocks were while the list was made, for a replica that has less.
type Snapshot struct {
	Index, Term uint64 // of an entry that all chunks have
	Whole       uint64 // the last entry that a chunk may have
	Size        uint64 // of all blocks
	Chunks      []Chunk
}

// Chunk is a piece of the blocks. All but the last have chunkLen bytes.
type Chunk struct {
	Off uint64
	CRC uint32
}

const chunkLen = 256 << 10

// Snapshot lists the chunks that are not all zeros. Entries may be applied meanwhile. It reads
// all blocks, and stops when the context ends.
func (d *Disk) Snapshot(ctx context.Context) (s Snapshot, err error) {
	s.Index, s.Term = d.Applied()
	s.Size = uint64(len(d.blocks))
	for off := uint64(0); off < s.Size; off += chunkLen {
		if ctx.Err() != nil {
			return Snapshot{}, context.Cause(ctx)
		}
		var c Chunk
		var zero bool
		if c, zero, s.Whole, err = d.look(off); err != nil {
			return Snapshot{}, err
		}
		if !zero {
			s.Chunks = append(s.Chunks, c)
		}
	}
	return s, nil
}

// Chunk is the chunk at an offset now, and the last entry that it may have. A replica that
// found a chunk changed since the snapshot asks for it.
func (d *Disk) Chunk(off uint64) (c Chunk, index uint64, err error) {
	if off%chunkLen != 0 || off >= uint64(len(d.blocks)) {
		return c, 0, fmt.Errorf("state: no chunk at %d", off)
	}
	c, _, index, err = d.look(off)
	return c, index, err
}

// look looks at the chunk at an offset between two entries.
func (d *Disk) look(off uint64) (c Chunk, zero bool, index uint64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.chunk(off)
	if d.catching {
		err = ErrCatchingUp
	}
	return Chunk{off, entry.Sum(b)}, allZero(b), max(d.applied, d.whole), err
}

// chunk is the bytes of the chunk at an offset.
func (d *Disk) chunk(off uint64) []byte {
	return d.blocks[off:min(off+chunkLen, uint64(len(d.blocks)))]
}

var zeros [chunkLen]byte

// allZero reports whether b, which is no longer than a chunk, has zeros only.
func allZero(b []byte) bool { return bytes.Equal(b, zeros[:len(b)]) }

const (
	snapshotLen = 32
	chunkBytes  = 12
)

// MostSnapshot is the most bytes that the snapshot of so many bytes of blocks has.
func MostSnapshot(blocks int) int { return snapshotLen + (blocks+chunkLen-1)/chunkLen*chunkBytes }

var errSnapshot = errors.New("state: malformed snapshot")

// Append appends the snapshot as bytes: index, term, whole and size, eight bytes each,
// and for each chunk eight of offset and four of CRC; all little-endian.
func (s *Snapshot) Append(b []byte) []byte {
	for _, v := range []uint64{s.Index, s.Term, s.Whole, s.Size} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	for _, c := range s.Chunks {
		b = binary.LittleEndian.AppendUint64(b, c.Off)
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
	s = Snapshot{Index: word(0), Term: word(1), Whole: word(2), Size: word(3)}
	if s.Whole < s.Index {
		return Snapshot{}, errSnapshot
	}
	next := uint64(0)
	for b = b[snapshotLen:]; len(b) != 0; b = b[chunkBytes:] {
		c := Chunk{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:])}
		if c.Off%chunkLen != 0 || c.Off < next || c.Off >= s.Size {
			return Snapshot{}, errSnapshot
		}
		next = c.Off + 1
		s.Chunks = append(s.Chunks, c)
	}
	return s, nil
}
