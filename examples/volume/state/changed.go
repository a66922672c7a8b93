package state

import (
	"encoding/binary"

	"godat/examples/volume/entry"
)

// changed says of each chunk which entry wrote to it last, or a later one. So a replica that has all entries up to
// some index lacks the chunks of later ones, and no others.
//
// It is kept behind the blocks, and made stable before a mark: entries above the mark are applied once more after a
// crash, and noted then. A sector that is damaged stands for chunks that the mark's entry wrote.
type changed struct {
	last       []uint64 // by chunk
	begin, end int      // sectors that are to be put
}

// A sector has the indexes of so many chunks, the format, and a CRC of both and of its number.
//
//	0                504     508   512
//	+---------------+--------+-----+
//	| 63 x index    | "chg1" | CRC |
//	+---------------+--------+-----+
const (
	sectorLen     = 512
	sectorChunks  = 63
	sectorSum     = sectorLen - 4
	changedFormat = "chg1"
)

// chunksOf is how many chunks so many bytes of blocks have.
func chunksOf(blocks int) int { return (blocks + chunkLen - 1) / chunkLen }

// changedLen is the length of what says when they were written.
func changedLen(blocks int) int {
	return (chunksOf(blocks) + sectorChunks - 1) / sectorChunks * sectorLen
}

// blocksIn is how many bytes of blocks a store of a length has.
func blocksIn(memory int) int {
	room := (memory - marksLen) / entry.Unit * entry.Unit
	n := room - changedLen(room)
	for n+entry.Unit+changedLen(n+entry.Unit) <= room {
		n += entry.Unit
	}
	return n
}

// load reads what put has put. Of chunks that nothing is known of it takes an index.
func loadChanged(b []byte, blocks int, unknown uint64) changed {
	x := changed{last: make([]uint64, chunksOf(blocks))}
	for i := range len(b) / sectorLen {
		sector := b[i*sectorLen:][:sectorLen]
		good := sectorCRC(sector, i) == binary.LittleEndian.Uint32(sector[sectorSum:])
		if !good {
			x.dirty(i)
		}
		for at := range x.of(i) {
			if x.of(i)[at] = unknown; good {
				x.of(i)[at] = binary.LittleEndian.Uint64(sector[8*at:])
			}
		}
	}
	return x
}

// of are the chunks of a sector.
func (x *changed) of(sector int) []uint64 {
	return x.last[sector*sectorChunks : min((sector+1)*sectorChunks, len(x.last))]
}

// dirty notes that a sector is to be put.
func (x *changed) dirty(sector int) {
	if x.begin == x.end {
		x.begin, x.end = sector, sector+1
	}
	x.begin, x.end = min(x.begin, sector), max(x.end, sector+1)
}

// wrote notes that an entry wrote to a range.
func (x *changed) wrote(off, n int, index uint64) {
	if n == 0 {
		return
	}
	for i := off / chunkLen; i <= (off+n-1)/chunkLen; i++ {
		if x.last[i] < index {
			x.last[i] = index
			x.dirty(i / sectorChunks)
		}
	}
}

// put returns the sectors that have changed, and where they belong.
func (x *changed) put() (off int, b []byte) {
	off, b = x.begin*sectorLen, make([]byte, (x.end-x.begin)*sectorLen)
	for i := x.begin; i < x.end; i++ {
		sector := b[(i-x.begin)*sectorLen:][:sectorLen]
		for at, index := range x.of(i) {
			binary.LittleEndian.PutUint64(sector[8*at:], index)
		}
		copy(sector[sectorChunks*8:], changedFormat)
		binary.LittleEndian.PutUint32(sector[sectorSum:], sectorCRC(sector, i))
	}
	x.begin, x.end = 0, 0
	return off, b
}

// sectorCRC is the CRC of a sector with a number. A sector without the format has none that is right.
func sectorCRC(sector []byte, number int) uint32 {
	sum := entry.Sum(binary.LittleEndian.AppendUint64(append([]byte(nil), sector[:sectorSum]...), uint64(number)))
	if string(sector[sectorChunks*8:sectorSum]) != changedFormat {
		return ^binary.LittleEndian.Uint32(sector[sectorSum:])
	}
	return sum
}
