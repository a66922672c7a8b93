package state

import (
	"encoding/binary"
	"errors"
	"fmt"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/store"
	"godat/examples/volume/entry"
)

// mark says what the blocks have for good. Two places take turns, so that one has a mark
// while the other is written.
type mark struct {
	number   uint64 // of the mark, from 1
	index    uint64 // of the last entry
	term     uint64 // of that entry
	whole    uint64 // the entry from which on the blocks are of one moment
	catching bool   // the blocks are partly those of another replica
	volume   identity.ID
	blanks   blanks // of entries up to that one
}

const (
	markPage = 4096 // of each place
	markLen  = 64
	marksLen = 2 * markPage
)

// The format says whether zeros follow the mark: the program of before knows marks without.
const (
	markFormat  = "mar3"
	zerosFormat = "mar4"
)

var errMarks = errors.New("state: the disk has lost its marks")

// put writes the mark to its place, and returns where that is.
//
//	0        8       16     24      32         40       56       60    64
//	+--------+-------+------+-------+----------+--------+--------+-----+
//	| number | index | term | whole | catching | volume | "mar3" | CRC |
//	+--------+-------+------+-------+----------+--------+--------+-----+
//
// With zeros it has "mar4", and they follow: how many, and of each the offset and the end, eight bytes each, which the CRC covers, too.
func (m mark) put(memory []byte) (at, n int) {
	at = int(m.number%2) * markPage
	b := make([]byte, 0, markLen)
	for _, v := range []uint64{m.number, m.index, m.term, m.whole} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	catching := uint64(0)
	if m.catching {
		catching = 1
	}
	b = binary.LittleEndian.AppendUint64(b, catching)
	b = append(b, m.volume[:]...)
	var left []byte
	if len(m.blanks) == 0 {
		b = append(b, markFormat...)
	} else {
		b = append(b, zerosFormat...)
		left = binary.LittleEndian.AppendUint64(nil, uint64(len(m.blanks)))
	}
	for _, r := range m.blanks {
		left = binary.LittleEndian.AppendUint64(left, uint64(r.off))
		left = binary.LittleEndian.AppendUint64(left, uint64(r.end))
	}
	b = binary.LittleEndian.AppendUint32(b, entry.Sum(append(b[:len(b):len(b)], left...)))
	return at, copy(memory[at:], append(b, left...))
}

// parseMark parses what put has put.
func parseMark(b []byte) (m mark, ok bool) {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	const first = markLen / 8
	var left []byte
	switch string(b[56:60]) {
	case markFormat:
	case zerosFormat:
		if word(first) > mostZeros {
			return m, false
		}
		left = b[markLen:][:8+16*word(first)]
	default:
		return m, false
	}
	if binary.LittleEndian.Uint32(b[60:]) != entry.Sum(append(b[:60:60], left...)) {
		return m, false
	}
	m = mark{number: word(0), index: word(1), term: word(2), whole: word(3), catching: word(4) != 0, volume: identity.ID(b[40:56])}
	for i := range len(left) / 16 {
		m.blanks = append(m.blanks, blank{off: int(word(first + 1 + 2*i)), end: int(word(first + 2 + 2*i))})
	}
	return m, true
}

// lastMark is the mark with the highest number. A disk that never had one has that of no
// entry.
func lastMark(memory []byte) (last mark, err error) {
	blank := true
	for at := 0; at < marksLen; at += markPage {
		b := memory[at:][:markLen]
		if allZero(b) {
			continue
		}
		// The first mark goes to the second place. It may be cut short by a crash.
		blank = blank && at == markPage
		if m, ok := parseMark(memory[at:][:markPage]); ok && m.number > last.number {
			last = m
		}
	}
	if last.number == 0 && !blank {
		return last, errMarks
	}
	return last, nil
}

// Make makes a store of zeros the disk of a volume, for good.
func Make(s store.Store, volume identity.ID) error {
	if err := s.Flush(mark{number: 1, volume: volume}.put(s.Memory())); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return nil
}

// Made reports whether a store has a disk: a mark is there.
func Made(s store.Store) bool {
	memory := s.Memory()
	return len(memory) >= marksLen && !(allZero(memory[:markLen]) && allZero(memory[markPage:][:markLen]))
}
