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
}

const (
	markPage = 4096 // of each place
	markLen  = 64
	marksLen = 2 * markPage
)

const markFormat = "mar3"

var errMarks = errors.New("state: the disk has lost its marks")

// put writes the mark to its place, and returns the offset.
//
//	0        8       16     24      32         40       56       60    64
//	+--------+-------+------+-------+----------+--------+--------+-----+
//	| number | index | term | whole | catching | volume | "mar3" | CRC |
//	+--------+-------+------+-------+----------+--------+--------+-----+
func (m mark) put(memory []byte) (at int) {
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
	b = append(b, markFormat...)
	copy(memory[at:], binary.LittleEndian.AppendUint32(b, entry.Sum(b)))
	return at
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
		if binary.LittleEndian.Uint32(b[60:]) != entry.Sum(b[:60]) || string(b[56:60]) != markFormat {
			continue
		}
		word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
		if m := (mark{word(0), word(1), word(2), word(3), word(4) != 0, identity.ID(b[40:56])}); m.number > last.number {
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
	at := mark{number: 1, volume: volume}.put(s.Memory())
	if err := s.Flush(at, markLen); err != nil {
		return fmt.Errorf("state: %w", err)
	}
	return nil
}

// Made reports whether a store has a disk: a mark is there.
func Made(s store.Store) bool {
	memory := s.Memory()
	return len(memory) >= marksLen && !(allZero(memory[:markLen]) && allZero(memory[markPage:][:markLen]))
}
