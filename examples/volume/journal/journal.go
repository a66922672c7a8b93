// Package journal keeps the data of writes from their beginning until the disk has it
// for good.
//
// A journal is a file of slots, in memory of its own: devices write to that, and the journal writes it to the file. A slot takes the data of one write, which an entry
// of the log names by the slot and the data's CRC. The slots of a node are those that the
// node fills when it leads, in its own journal; the others read them from there into the same
// slots of theirs. A Pool says which of its slots a leader may fill, and a Fence for whom
// and into which slots a replica reads.
package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/store"
	"godat/examples/volume/entry"
)

// Layout is how a journal is divided. It is the same for all replicas of a volume, for ever.
type Layout struct {
	Nodes    int // that may lead
	Slots    int // of each node
	SlotSize int // in bytes, a multiple of a page
	// Volume is the volume whose journal it is.
	Volume identity.ID `json:"-"`
}

// page is the length of the head. Slots begin with a page.
const page = 4096

// Size is the length of the journal's file.
func (l Layout) Size() int { return page + l.Nodes*l.Slots*l.SlotSize }

// Check checks that there can be such a journal.
func (l Layout) Check() error {
	if l.Nodes < 1 || l.Slots < 1 || l.SlotSize < 1 || l.SlotSize%page != 0 ||
		l.SlotSize > math.MaxInt32 || l.Slots > math.MaxInt32/l.Nodes || l.Nodes*l.Slots > (math.MaxInt-page)/l.SlotSize {
		return fmt.Errorf("journal: a layout of %d nodes with %d slots of %d bytes", l.Nodes, l.Slots, l.SlotSize)
	}
	return nil
}

// ErrOther is the error of a slot that has other data than an entry says.
var ErrOther = errors.New("journal: the slot has other data")

// Journal is an open journal. Its methods may be called from any goroutine.
type Journal struct {
	// Immutable.
	store  store.Store
	layout Layout

	mu     sync.Mutex // held for moments
	failed error      // of the first sync that failed
	known  []known    // of each slot
}

// known is what a journal knows of a slot. An entry of length 0 is none.
type known struct {
	off      uint64
	len, crc uint32 // of the entry whose data was found in it
	life     uint32 // counts how often that was forgotten
}

// Open opens the journal in a store of the layout's size, and makes one of a store of
// zeros. The caller keeps the store, and closes it after the last call.
func Open(s store.Store, l Layout) (*Journal, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if len(s.Memory()) < l.Size() {
		return nil, fmt.Errorf("journal: %d bytes of %d", len(s.Memory()), l.Size())
	}
	head, want := s.Memory()[:headLen], l.head()
	switch {
	case bytes.Equal(head, want):
	case !bytes.Equal(head, make([]byte, headLen)):
		return nil, l.other(head)
	default:
		copy(head, want)
		if err := s.Flush(0, page); err != nil {
			return nil, fmt.Errorf("journal: %w", err)
		}
	}
	return &Journal{store: s, layout: l, known: make([]known, l.Nodes*l.Slots)}, nil
}

const (
	format    = "godat 2\n"
	volumeEnd = len(format) + len(identity.ID{})
	headLen   = volumeEnd + 16
)

// head is what the file begins with.
//
//	0           8        24      28      32         36
//	+-----------+--------+-------+-------+----------+-----+
//	| "godat 2" | volume | nodes | slots | slotsize | CRC |
//	+-----------+--------+-------+-------+----------+-----+
func (l Layout) head() []byte {
	b := append(make([]byte, 0, headLen), format...)
	b = append(b, l.Volume[:]...)
	b = binary.LittleEndian.AppendUint32(b, uint32(l.Nodes))
	b = binary.LittleEndian.AppendUint32(b, uint32(l.Slots))
	b = binary.LittleEndian.AppendUint32(b, uint32(l.SlotSize))
	return binary.LittleEndian.AppendUint32(b, entry.Sum(b))
}

// other is why a head is not the layout's.
func (l Layout) other(head []byte) error {
	if volume := identity.ID(head[len(format):volumeEnd]); string(head[:len(format)]) == format && volume != l.Volume {
		return fmt.Errorf("journal: it is of volume %v, not of %v", volume, l.Volume)
	}
	return errors.New("journal: it has another layout, or another format, or is none")
}

// Made reports whether a store has a journal: it is not all zeros where the head is.
func Made(s store.Store) bool {
	memory := s.Memory()
	return len(memory) >= headLen && !bytes.Equal(memory[:headLen], make([]byte, headLen))
}

// Memory is the whole file, which whoever embeds the journal registers.
func (j *Journal) Memory() []byte { return j.store.Memory()[:j.layout.Size()] }

// Volume is the volume whose journal it is.
func (j *Journal) Volume() identity.ID { return j.layout.Volume }

// Offset is where a slot begins in Memory.
func (j *Journal) Offset(slot uint32) int { return page + int(slot)*j.layout.SlotSize }

// Slot is the first n bytes of a slot.
func (j *Journal) Slot(slot uint32, n int) ([]byte, error) {
	if int64(slot) >= int64(j.layout.Nodes)*int64(j.layout.Slots) || n < 0 || n > j.layout.SlotSize {
		return nil, fmt.Errorf("journal: no slot %d of %d bytes", slot, n)
	}
	return j.Memory()[j.Offset(slot):][:n:n], nil
}

// Data is the data of a Write. It returns ErrOther if the slot has other data. It sums the data once, until Forget.
func (j *Journal) Data(e *entry.Entry) ([]byte, error) {
	data, err := j.Slot(e.Slot, int(e.Len))
	if err != nil {
		return nil, err
	}
	life, has := j.has(e)
	if has {
		return data, nil
	}
	if !e.Right(data) {
		return nil, fmt.Errorf("%w: %d", ErrOther, e.Slot)
	}
	j.know(e, life)
	return data, nil
}

// Seal is the Write with the CRC of the data in its slot.
func (j *Journal) Seal(e entry.Entry) (entry.Entry, error) {
	data, err := j.Slot(e.Slot, int(e.Len))
	if err != nil {
		return e, err
	}
	life, _ := j.has(&e)
	e = e.Sealed(data)
	j.know(&e, life)
	return e, nil
}

// Forget says that somebody is going to write to a slot. It comes before that.
func (j *Journal) Forget(slot uint32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.known[slot] = known{life: j.known[slot].life + 1}
}

// has reports whether the data of an entry was found in its slot, which is there, and nobody has written to it since.
func (j *Journal) has(e *entry.Entry) (life uint32, has bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	k := j.known[e.Slot]
	return k.life, e.Len != 0 && k == known{e.Off, e.Len, e.CRC, k.life}
}

// know notes that the data of an entry was found in its slot, unless somebody has begun to write to that meanwhile.
func (j *Journal) know(e *entry.Entry, life uint32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.known[e.Slot].life == life {
		j.known[e.Slot] = known{e.Off, e.Len, e.CRC, life}
	}
}

// Sync makes the data of the Writes among entries stable, with one flush. After a sync
// that failed all others fail, too: the system may have forgotten which pages it did not write.
func (j *Journal) Sync(entries []entry.Entry) error {
	staged, _ := j.store.(store.Staged)
	begin, end := math.MaxInt, 0
	var err error
	for i := range entries {
		if e := &entries[i]; e.Op == entry.Write {
			off := j.Offset(e.Slot)
			begin, end = min(begin, off), max(end, off+int(e.Len))
			if staged != nil && err == nil {
				err = staged.Stage(off, int(e.Len))
			}
		}
	}
	if end == 0 {
		return nil
	}
	if staged != nil { // the slots between are not to be written
		end = begin
	}
	if err == nil {
		err = j.store.Flush(begin, end-begin)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil && j.failed == nil {
		j.failed = fmt.Errorf("journal: %w", err)
	}
	return j.failed
}
