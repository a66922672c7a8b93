package state

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
)

// blanks are ranges of the blocks that read as zeros and are not written yet, by offset, apart from each other. So an
// entry.Zero of any length is applied in a moment: the blocks become zeros piece by piece, between other entries, and
// before anybody reads them. A mark has the ranges that there were then, so a replica releases such an entry like any
// other. It has room for so many; of more, which entries and reads in their middle make, some are written before the mark.
type blanks []blank

// blank is a range of an entry.
type blank struct {
	off, end int
	index    uint64 // of the entry, 0 for one of the mark
}

const (
	zeroAtOnce = 8 << 10   // an entry of fewer bytes is written when it is applied
	zeroPiece  = 256 << 10 // is written while others wait for the lock
	mostZeroed = 8 << 20   // is written between two releases, so that none takes long
	mostZeros  = 128       // ranges in a mark, which has room for more
)

// add adds a range, but for what is there: that becomes zeros by an earlier entry. It makes one range of those that touch,
// unless an entry.Check is between their entries.
func (z *blanks) add(off, end int, index, check uint64) {
	for _, r := range slices.Clone(*z) {
		if r.end <= off || r.off >= end {
			continue
		}
		if off < r.off {
			*z = append(*z, blank{off, r.off, index})
		}
		off = r.end
	}
	if off < end {
		*z = append(*z, blank{off, end, index})
	}
	z.sort()
	all := (*z)[:0]
	for _, r := range *z {
		if last := len(all) - 1; last >= 0 && all[last].end == r.off && (all[last].index <= check) == (r.index <= check) {
			all[last].end, all[last].index = r.end, max(all[last].index, r.index)
			continue
		}
		all = append(all, r)
	}
	*z = all
}

// have reports whether all of a range is there.
func (z blanks) have(off, end int) bool {
	for _, r := range z {
		if r.off <= off && off < r.end {
			off = r.end
		}
	}
	return off >= end
}

// cut takes away what is there of a range, of entries up to an index, and returns it.
func (z *blanks) cut(off, end int, index uint64) (cut []blank) {
	var left []blank
	for _, r := range *z {
		if r.end <= off || r.off >= end || r.index > index {
			left = append(left, r)
			continue
		}
		cut = append(cut, blank{max(off, r.off), min(end, r.end), r.index})
		if r.off < off {
			left = append(left, blank{r.off, off, r.index})
		}
		if r.end > end {
			left = append(left, blank{end, r.end, r.index})
		}
	}
	if cut != nil {
		*z = left
		z.sort()
	}
	return cut
}

func (z *blanks) sort() { slices.SortFunc(*z, func(a, b blank) int { return a.off - b.off }) }

// shortest is the range with the fewest bytes.
func (z blanks) shortest() blank {
	return slices.MinFunc(z, func(a, b blank) int { return (a.end - a.off) - (b.end - b.off) })
}

// zero applies an entry.Zero. The caller holds the lock.
func (d *Disk) zero(off, end int, index uint64) error {
	check := ^uint64(0) // there is none
	if d.sums != nil {
		check = d.sums.index
	}
	d.blanks.add(off, end, index, check)
	d.count()
	if end-off < zeroAtOnce {
		return d.settle(off, end)
	}
	return nil
}

// bound makes the ranges as few as a mark may have. The caller holds the lock, which others get between two pieces.
func (d *Disk) bound() {
	for len(d.blanks) > mostZeros {
		r := d.blanks.shortest()
		_ = d.settle(r.off, min(r.end, r.off+zeroPiece)) // the caller looks at unseen
		if len(d.blanks) > mostZeros {
			d.mu.Unlock()
			runtime.Gosched()
			d.mu.Lock()
		}
	}
}

// cut takes a range out of those that are zeros, since an entry with an index writes to it. The caller holds the lock.
func (d *Disk) cut(off, end int, index uint64) {
	d.blanks.cut(off, end, index)
	d.count()
}

// settle writes the zeros of a range. A check that is under way sums each chunk first. The caller holds the lock.
func (d *Disk) settle(off, end int) error {
	for _, r := range d.blanks {
		if from, to := max(off, r.off), min(end, r.end); from < to {
			for chunk := from / chunkLen; chunk <= (to-1)/chunkLen; chunk++ {
				d.sum(chunk)
			}
		}
	}
	return d.settleUpTo(off, end, ^uint64(0))
}

// settleUpTo writes the zeros of a range that entries up to an index made. The caller holds the lock.
func (d *Disk) settleUpTo(off, end int, index uint64) error {
	for _, r := range d.blanks.cut(off, end, index) {
		n := r.end - r.off
		if err := d.store.Zero(marksLen+r.off, n); err != nil && d.unseen == nil {
			d.unseen = fmt.Errorf("state: %d zeros at %d: %w", n, r.off, err)
		}
		d.wrote(r.off, n)
		d.zeroed += n
	}
	d.count()
	return d.unseen
}

// Settle writes the zeros of a range that are not written yet: its bytes in Memory may be read.
func (d *Disk) Settle(off, n int) error {
	if d.zeros.Load() == 0 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.settle(off, off+n)
}

// Zeroing reports whether ZeroNext has something to do: it has not before the next Release if it has done much.
func (d *Disk) Zeroing() bool {
	if d.zeros.Load() == 0 {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.blanks) != 0 && d.zeroed < mostZeroed
}

// ZeroNext writes a piece of the zeros that are not written yet.
func (d *Disk) ZeroNext() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.blanks) == 0 {
		return nil
	}
	r := d.blanks[0]
	return d.settle(r.off, min(r.end, r.off+zeroPiece))
}

// Copy copies a range of the blocks between two entries, unless they are of several moments. The caller has seen that it is
// within.
func (d *Disk) Copy(to []byte, off int) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.ready(); err != nil {
		return err
	}
	copy(to, d.blocks[off:])
	for _, r := range d.blanks {
		if from, end := max(off, r.off), min(off+len(to), r.end); from < end {
			clear(to[from-off : end-off])
		}
	}
	return nil
}

// Same reports whether a range of the blocks, 4 KiB at most, is as these bytes, as Copy would copy it.
func (d *Disk) Same(as []byte, off int) (bool, error) {
	var b [4 << 10]byte
	has := b[:len(as)]
	err := d.Copy(has, off)
	return err == nil && bytes.Equal(as, has), err
}

// Zeros is how many bytes read as zeros, and are not written yet. It waits for no access to the disk.
func (d *Disk) Zeros() int { return int(d.zeros.Load()) }

// count counts them. The caller holds the lock.
func (d *Disk) count() {
	n := 0
	for _, r := range d.blanks {
		n += r.end - r.off
	}
	d.zeros.Store(int64(n))
}
