// Package state has a replica's disk: the blocks, and which entries of the log are in them.
//
// The disk is a mapped file of two marks, the blocks, and when each chunk of them was written last. A mark says up to
// which entry the blocks have all entries for good. Entries above it may be in the blocks, too; they are applied once
// more after a crash, in order, which ends the same.
package state

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"godat/examples/nvmeof/identity"
	"godat/examples/nvmeof/store"
	"godat/examples/volume/entry"
)

// The errors of a disk that can't do what is asked of it now.
var (
	// ErrCatchingUp says that the blocks are partly those of another replica.
	ErrCatchingUp = errors.New("state: the disk is catching up")
	// ErrNotWhole says that the blocks are of several moments until more entries are applied.
	ErrNotWhole = errors.New("state: the disk is not whole yet")
	// ErrOther says that data is not what its CRC says.
	ErrOther = errors.New("state: other data than the CRC says")
)

// Disk is a replica's disk. Its methods may be called from any goroutine.
type Disk struct {
	// Immutable.
	store  store.Store
	prober store.Prober // nil if no access to the memory fails
	writer io.WriterAt  // of the store, or nil: its memory is written to
	blocks []byte
	table  []byte // of changed

	marking sync.Mutex // held while a mark is made
	mark    mark       // the one on the disk; guarded by marking
	failed  error      // of the first flush that failed; guarded by marking

	mu       sync.Mutex // held for moments
	applied  uint64     // the blocks have all entries up to this one
	term     uint64     // of that entry
	whole    uint64     // the blocks are of one moment once this entry is applied
	catching bool
	since    uint64 // a chunk that no later entry wrote to has all entries; below applied only while catching up
	changed  changed
	begin    int // of what was written since the last release
	end      int
	checked  Checked
	sums     *sums  // nil without a check
	crcs     []byte // of the chunks, of checked
	blanks   blanks
	zeroed   int   // bytes that were written as zeros since the last release
	unseen   error // of the first range that could not be accessed where nobody could be told

	zeros atomic.Int64 // bytes of blanks; set under mu

	noting sync.Mutex // held for moments by all that write to applied, term, catching, checked and sums, under mu, and by who reads them without
}

// Checked is what a disk was when it applied an entry.Check: a CRC of the CRCs of its chunks.
type Checked struct {
	Index uint64 `json:"index"`
	CRC   uint32 `json:"crc"`
}

// Size is the length of the file of a disk with so many bytes of blocks.
func Size(blocks int) int { return marksLen + blocks + changedLen(blocks) }

// Open opens the disk of a volume in a store, which has marks before the blocks; zeros are a new disk.
// The last entry that the replica's log has is the last one that the blocks may have. The
// caller keeps the store, and closes it after the last call.
func Open(s store.Store, volume identity.ID, last uint64) (*Disk, error) {
	memory := s.Memory()
	if len(memory) < Size(entry.Unit) {
		return nil, fmt.Errorf("state: a disk of %d bytes", len(memory))
	}
	n := blocksIn(len(memory))
	d := &Disk{store: s, blocks: memory[marksLen:][:n], table: memory[marksLen+n:][:changedLen(n)]}
	d.prober, _ = s.(store.Prober)
	d.writer, _ = s.(io.WriterAt)
	if err := d.reach(0, marksLen); err != nil {
		return nil, err
	}
	m, err := lastMark(memory)
	if err != nil {
		return nil, err
	}
	if m.number != 0 && m.volume != volume {
		return nil, fmt.Errorf("state: the disk is of volume %v, not of %v", m.volume, volume)
	}
	if m.number != 0 {
		if err := d.renew(); err != nil {
			return nil, err
		}
	}
	m.volume = volume
	d.mark, d.applied, d.term, d.whole = m, m.index, m.term, max(m.whole, last)
	d.catching, d.since, d.changed, d.blanks = m.catching, m.index, loadChanged(d.table, n, m.index), slices.Clone(m.blanks)
	for _, r := range d.blanks {
		if r.off < 0 || r.off >= r.end || r.end > n {
			return nil, errMarks
		}
	}
	d.count()
	return d, nil
}

// renew makes stable when chunks were written, and then the marks: a process that was killed may have left them in the
// system's memory, and one whose flush has failed, too, where the system takes them for written. So they are written to
// first. The blocks are those of entries above the mark, which are applied once more.
func (d *Disk) renew() error {
	for _, r := range [][2]int{{marksLen + len(d.blocks), len(d.table)}, {0, marksLen}} {
		err := d.reach(r[0], r[1])
		if err == nil {
			err = d.store.Flush(r[0], r[1])
		}
		if err != nil {
			return fmt.Errorf("state: %w", err)
		}
	}
	return nil
}

// reach returns an error if a range of the store can't be accessed, which would be a signal otherwise, and has its pages written anew.
func (d *Disk) reach(off, n int) error {
	if d.prober == nil || n == 0 {
		return nil
	}
	if err := d.prober.Probe(off, n, true); err != nil {
		return fmt.Errorf("state: %d bytes at %d of the disk's file: %w", n, off, err)
	}
	return nil
}

// write writes to a range of the store. By a call, pages of which all is written are not read from the disk first, and no
// access fails.
func (d *Disk) write(off int, data []byte) error {
	if d.writer == nil {
		err := d.reach(off, len(data))
		if err == nil {
			copy(d.store.Memory()[off:], data)
		}
		return err
	}
	if _, err := d.writer.WriteAt(data, int64(off)); err != nil {
		return fmt.Errorf("state: write %d bytes at %d of the disk's file: %w", len(data), off, err)
	}
	return nil
}

// see is reach for a range of the blocks that is read.
func (d *Disk) see(off, n int) error {
	if d.prober == nil || n == 0 {
		return nil
	}
	if err := d.prober.Probe(marksLen+off, n, false); err != nil {
		return fmt.Errorf("state: %d bytes at %d of the disk: %w", n, off, err)
	}
	return nil
}

// Probe returns an error if a range of the blocks can't be read.
func (d *Disk) Probe(off, n int) error { return d.see(off, n) }

// Memory is the blocks.
func (d *Disk) Memory() []byte { return d.blocks }

// Applied is the last entry that was applied, and its term. It waits for no access to the disk.
func (d *Disk) Applied() (index, term uint64) {
	d.noting.Lock()
	defer d.noting.Unlock()
	return d.applied, d.term
}

// note notes the last entry that was applied. The caller holds mu.
func (d *Disk) note(index, term uint64) {
	d.noting.Lock()
	defer d.noting.Unlock()
	d.applied, d.term = index, term
}

// CatchingUp reports whether the blocks are partly those of another replica. It waits for no access to the disk.
func (d *Disk) CatchingUp() bool {
	d.noting.Lock()
	defer d.noting.Unlock()
	return d.catching
}

// catches notes whether the disk catches up. The caller holds mu.
func (d *Disk) catches(up bool) {
	d.noting.Lock()
	defer d.noting.Unlock()
	d.catching = up
}

// Ready is nil if the blocks are those of the last entry that was applied, and of no other.
func (d *Disk) Ready() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ready()
}

// ready is Ready. The caller holds the lock.
func (d *Disk) ready() error {
	switch {
	case d.catching:
		return ErrCatchingUp
	case d.applied < d.whole:
		return fmt.Errorf("%w: it has entry %d of %d", ErrNotWhole, d.applied, d.whole)
	}
	return nil
}

// Apply applies the entry with an index. The data is that of the slot, for a Write. An entry
// that the blocks have already changes nothing; one that comes too early is an error. One goroutine at a time applies.
func (d *Disk) Apply(index, term uint64, e *entry.Entry, data []byte) error {
	if e.Op == entry.Small {
		data = e.Data
	}
	if err := d.check(e, data); err != nil {
		return err
	}
	if e.Op != entry.Zero { // whose blocks are summed when they become zeros
		d.sumFirst(int(e.Off), int(e.Len))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.unseen != nil:
		return d.unseen
	case d.catching:
		return ErrCatchingUp
	case index <= d.applied:
		return nil
	case index > d.applied+1:
		return fmt.Errorf("state: entry %d follows entry %d", index, d.applied)
	}
	off, n := int(e.Off), int(e.Len)
	switch e.Op {
	case entry.Write, entry.Small:
		d.cut(off, off+n, index)
		if err := d.write(marksLen+off, data); err != nil {
			return err
		}
	case entry.None:
	case entry.Check:
		d.beginCheck(index)
	case entry.Zero:
		if err := d.zero(off, off+n, index); err != nil {
			return err
		}
	}
	if e.Op != entry.Zero {
		d.wrote(off, n)
	}
	d.changed.wrote(off, n, index)
	d.note(index, term)
	return nil
}

// Checked is the last check that has ended since the disk was opened. It waits for no access to the disk.
func (d *Disk) Checked() Checked {
	d.noting.Lock()
	defer d.noting.Unlock()
	return d.checked
}

// Failed is why nothing of the disk becomes stable any more, until it is opened again, or nil.
func (d *Disk) Failed() error {
	d.marking.Lock()
	defer d.marking.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	return cmp.Or(d.failed, d.unseen)
}

// Cut says that the log has lost its entries from an index on, so that no disk has them.
func (d *Disk) Cut(index uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.whole = min(d.whole, index-1)
}

// check checks that an entry can be applied.
func (d *Disk) check(e *entry.Entry, data []byte) error {
	if err := d.within(e.Off, uint64(e.Len)); err != nil {
		return err
	}
	if (e.Op == entry.Write || e.Op == entry.Small) && len(data) != int(e.Len) || !e.Right(data) {
		return fmt.Errorf("%w: %d bytes at %d", ErrOther, e.Len, e.Off)
	}
	return nil
}

func (d *Disk) within(off, n uint64) error {
	if size := uint64(len(d.blocks)); off > size || n > size-off {
		return fmt.Errorf("state: %d bytes at %d of %d", n, off, size)
	}
	return nil
}

// wrote notes that a range was written. The caller holds the lock.
func (d *Disk) wrote(off, n int) {
	switch {
	case n == 0:
	case d.begin == d.end:
		d.begin, d.end = off, off+n
	default:
		d.begin, d.end = min(d.begin, off), max(d.end, off+n)
	}
}

// Compare reports whether the blocks from an offset on have some data.
func (d *Disk) Compare(off uint64, data []byte) (bool, error) {
	if err := d.within(off, uint64(len(data))); err != nil {
		return false, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.settle(int(off), int(off)+len(data)); err != nil {
		return false, err
	}
	return bytes.Equal(d.blocks[off:][:len(data)], data), d.ready()
}

// Release makes the blocks stable with all entries that were applied before the call, and
// returns the last one: the disk does not need it any more, nor its slot. After a
// flush that failed, all releases fail: the system may have forgotten which pages it did not
// write.
func (d *Disk) Release() (index uint64, err error) {
	d.marking.Lock()
	defer d.marking.Unlock()
	d.mu.Lock()
	d.bound()
	if d.unseen != nil {
		defer d.mu.Unlock()
		return d.mark.index, d.unseen
	}
	m := d.mark
	m.index, m.term, m.blanks = d.applied, d.term, slices.Clone(d.blanks)
	begin, end, catching := d.begin, d.end, d.catching
	if !catching {
		d.begin, d.end, d.zeroed = 0, 0, 0
		d.since = max(d.since, m.index)
	}
	d.mu.Unlock()
	if catching || m.index == d.mark.index && begin == end {
		return d.mark.index, d.failed
	}
	return m.index, d.makeStable(m, begin, end)
}

// makeStable makes a range of the blocks stable, and when they were written, and then the mark that says so. The
// caller holds marking.
func (d *Disk) makeStable(m mark, begin, end int) error {
	if d.failed != nil {
		return d.failed
	}
	var err error
	if begin != end {
		err = d.store.Flush(marksLen+begin, end-begin)
	}
	if err == nil {
		err = d.noteChanged()
	}
	if err == nil {
		err = d.reach(0, marksLen)
	}
	if err == nil {
		m.number, m.volume = d.mark.number+1, d.mark.volume
		err = d.store.Flush(m.put(d.store.Memory()))
	}
	if err != nil {
		d.failed = fmt.Errorf("state: %w", err)
		return d.failed
	}
	d.mark = m
	return nil
}

// noteChanged makes stable when chunks were written. The caller holds marking.
func (d *Disk) noteChanged() error {
	d.mu.Lock()
	off, table := d.changed.put()
	d.mu.Unlock()
	if len(table) == 0 {
		return nil
	}
	off += marksLen + len(d.blocks)
	if err := d.write(off, table); err != nil {
		return err
	}
	return d.store.Flush(off, len(table))
}
