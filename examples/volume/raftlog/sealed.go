package raftlog

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// A value of JSON is kept with its CRC behind it, as 32 blanks, a tab for each bit that is set: a program of before takes
// them for nothing, and keeps values without them.
const (
	blankBits = " \t"
	blanks    = 32
)

// setSealed keeps a value of JSON for good.
func (l *Log) setSealed(key []byte, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	sum := l.sum(b)
	for i := range blanks {
		b = append(b, blankBits[sum>>i&1])
	}
	return l.wal.Set(key, b)
}

// getSealed reads what setSealed has kept, or leaves the value as it is.
func (l *Log) getSealed(key []byte, value any) error {
	b, err := l.get(key)
	if err != nil || len(b) == 0 {
		return err
	}
	text := bytes.TrimRight(b, blankBits)
	if tail := b[len(text):]; len(tail) != 0 {
		sum := uint32(0)
		for i, c := range tail {
			if c == blankBits[1] {
				sum |= 1 << i
			}
		}
		if len(tail) != blanks || sum != l.sum(text) {
			return fmt.Errorf("%s: %w", key, ErrFlipped)
		}
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("%s: %w: %w", key, ErrFlipped, err)
	}
	return nil
}

// The record before the first is kept twice: as programs of before keep it, 16 bytes, and with a CRC behind that, which
// is kept first.
const beginsLen = 20

// setBefore keeps for good what the record before the first is.
func (l *Log) setBefore(index, term uint64) error {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, beginsLen), index)
	b = binary.LittleEndian.AppendUint64(b, term)
	if err := l.wal.Set(keyBegins, binary.LittleEndian.AppendUint32(b, l.sum(b))); err != nil {
		return err
	}
	return l.setPair(keyBefore, index, term)
}

// loadBefore reads what the record before the first is. What has a CRC counts, unless the records show that a program
// of before has begun with a later one since.
func (l *Log) loadBefore() (err error) {
	if l.before, l.term, err = l.pair(keyBefore); err != nil {
		return err
	}
	b, err := l.get(keyBegins)
	if err != nil || len(b) == 0 {
		return err
	}
	if len(b) != beginsLen || binary.LittleEndian.Uint32(b[beginsLen-4:]) != l.sum(b[:beginsLen-4]) {
		return fmt.Errorf("%s: %w", keyBegins, ErrFlipped)
	}
	index, term := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	first, last, err := l.inFile()
	if err != nil {
		return err
	}
	if later := last == 0 && l.before > index || last != 0 && first > index+1; later || l.before == index && l.term == term {
		return nil
	}
	l.before, l.term = index, term
	return l.setPair(keyBefore, index, term)
}
