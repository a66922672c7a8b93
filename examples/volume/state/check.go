package state

import (
	"cmp"
	"encoding/binary"

	"godat/examples/volume/entry"
)

// sums are the CRCs of the chunks as they were at an entry.Check, while they are made. A chunk that a later entry
// is to change is summed first.
type sums struct {
	index uint64
	crcs  []byte // little-endian, by chunk
	has   []bool
	next  int // all before it are summed
}

// beginCheck begins a check at an entry, unless the blocks are of several moments, since they may have later entries. One
// that is under way ends without a result. The caller holds the lock.
func (d *Disk) beginCheck(index uint64) {
	var s *sums
	if n := chunksOf(len(d.blocks)); index >= d.whole {
		s = &sums{index: index, crcs: make([]byte, 4*n), has: make([]bool, n)}
	}
	d.checks(s, d.checked)
}

// checks notes the check under way, and the last one that has ended. The caller holds mu.
func (d *Disk) checks(s *sums, checked Checked) {
	d.noting.Lock()
	defer d.noting.Unlock()
	d.sums, d.checked = s, checked
}

// sum sums a chunk, if that is to be done. The caller holds the lock.
func (d *Disk) sum(chunk int) {
	if s := d.sums; s != nil && !s.has[chunk] {
		s.has[chunk] = true
		off := chunk * chunkLen
		_ = d.settleUpTo(off, off+len(d.chunk(uint64(off))), s.index) // Apply says it
		if err := d.see(off, len(d.chunk(uint64(off)))); err != nil {
			d.unseen = cmp.Or(d.unseen, err)
			return
		}
		binary.LittleEndian.PutUint32(s.crcs[4*chunk:], entry.Sum(d.chunk(uint64(chunk)*chunkLen)))
	}
}

// sumFirst sums what is to be changed, chunk by chunk, so that nobody waits for more than one.
func (d *Disk) sumFirst(off, n int) {
	for chunk := off / chunkLen; n != 0 && chunk <= (off+n-1)/chunkLen; chunk++ {
		d.mu.Lock()
		d.sum(chunk)
		d.mu.Unlock()
	}
}

// SumNext goes on with a check by one chunk, and reports whether there is more to do. Any number of goroutines may
// call it, while entries are applied.
func (d *Disk) SumNext() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sums
	if s == nil || d.unseen != nil {
		return false
	}
	for s.next < len(s.has) && s.has[s.next] {
		s.next++
	}
	if s.next < len(s.has) {
		d.sum(s.next)
		return true
	}
	d.crcs = s.crcs
	d.checks(nil, Checked{s.index, entry.Sum(s.crcs)})
	return false
}

// Checking is the entry.Check of the check under way, or 0. It waits for no access to the disk.
func (d *Disk) Checking() uint64 {
	d.noting.Lock()
	defer d.noting.Unlock()
	if d.sums == nil {
		return 0
	}
	return d.sums.index
}

// ChunkLen is the length of all chunks but the last.
const ChunkLen = chunkLen

// Sums are the CRCs of the last check's chunks, from one on, 4 bytes each, little-endian, and at most so many.
func (d *Disk) Sums(from, most int) (of Checked, crcs []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := len(d.crcs) / 4
	from = min(max(from, 0), n)
	return d.checked, d.crcs[4*from : 4*min(n, from+most)] // nobody writes to them
}
