package state

import (
	"cmp"
	"fmt"
	"slices"

	"godat/examples/volume/entry"
)

// CatchUp makes a disk that of another replica's snapshot, chunk by chunk, and of later ones in further rounds. One
// goroutine owns it. If it does not finish, also because of a crash, the disk stays one that is
// catching up, and another CatchUp goes on.
type CatchUp struct {
	disk  *Disk
	from  Snapshot            // without the chunks that are right, and those under way
	under map[uint64]struct{} // offsets of chunks that Next has returned
	done  uint64              // bytes of this round's chunks
	all   uint64
}

// Since is the entry above which the disk lacks what other replicas have, while it catches up and before.
func (d *Disk) Since() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.since
}

// CatchUp begins to catch up, and notes that for good.
func (d *Disk) CatchUp(s Snapshot) (*CatchUp, error) {
	d.marking.Lock()
	defer d.marking.Unlock()
	if s.Index < d.mark.index {
		return nil, fmt.Errorf("state: a snapshot of entry %d for a disk that has released entry %d", s.Index, d.mark.index)
	}
	c := &CatchUp{disk: d, under: make(map[uint64]struct{})}
	if err := c.Round(s); err != nil {
		return nil, err
	}
	m := d.mark
	m.catching = true
	d.mu.Lock()
	d.catches(true)
	d.checks(nil, d.checked)
	d.mu.Unlock()
	return c, d.makeStable(m, 0, 0)
}

// Round goes on with a snapshot that was made later, once Next has no more chunks: it has what was written meanwhile.
func (c *CatchUp) Round(s Snapshot) error {
	d := c.disk
	since := d.Since()
	switch {
	case s.Size != uint64(len(d.blocks)):
		return fmt.Errorf("state: a snapshot of %d bytes for %d", s.Size, len(d.blocks))
	case s.Since > since || s.Index < since:
		return fmt.Errorf("state: a snapshot of entries %d to %d for a disk that has entry %d", s.Since, s.Index, since)
	case !c.right():
		return ErrCatchingUp
	}
	s.Chunks, s.Whole = slices.Clone(s.Chunks), max(s.Whole, c.from.Whole)
	c.from, c.done, c.all = s, 0, 0
	for _, chunk := range s.Chunks {
		c.all += uint64(len(d.chunk(chunk.Off)))
	}
	return nil
}

// right reports whether all chunks of the round are right.
func (c *CatchUp) right() bool { return len(c.from.Chunks) == 0 && len(c.under) == 0 }

// Next is the next chunk that differs; ok is false if none is left. The caller gets the bytes from the other replica, of
// several chunks at a time if it likes, and brings them with Put. After the last Put it calls Next once more.
//
// Of a list of all chunks those that the disk has already are not got. What was written since some entry differs.
func (c *CatchUp) Next() (chunk Chunk, ok bool) {
	for len(c.from.Chunks) != 0 {
		chunk = c.from.Chunks[0]
		has, err := c.has(chunk)
		if err != nil {
			return Chunk{}, false // Finish says why
		}
		c.from.Chunks = c.from.Chunks[1:]
		if !has {
			c.under[chunk.Off] = struct{}{}
			return chunk, true
		}
		c.took(chunk.Off)
	}
	if len(c.under) == 0 {
		c.disk.mu.Lock()
		defer c.disk.mu.Unlock()
		c.disk.since = c.from.Index
	}
	return Chunk{}, false
}

// has reports whether the disk has a chunk, or it is one of zeros, which it has then.
func (c *CatchUp) has(chunk Chunk) (bool, error) {
	switch {
	case c.from.Since == 0:
		if err := c.renewChunk(chunk); err != nil {
			return false, err
		}
		switch b := c.disk.chunk(chunk.Off); {
		case !chunk.Zero:
			return entry.Sum(b) == chunk.CRC, nil
		case !allZero(b):
			clear(b)
		}
		return true, nil
	case chunk.Zero:
		return true, c.write(chunk.Off, zeros[:len(c.disk.chunk(chunk.Off))])
	}
	return false, nil
}

// renewChunk has the pages of a chunk written, also if it is right: one that an earlier CatchUp has brought may be where the
// system takes it for written, and it is not. Zeros come first.
func (c *CatchUp) renewChunk(chunk Chunk) error {
	d := c.disk
	off, n := int(chunk.Off), len(d.chunk(chunk.Off))
	_ = d.see(off, n) // it is read while nobody waits, and an error comes again
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.settle(off, off+n); err != nil {
		return err
	}
	d.unseen = cmp.Or(d.unseen, d.reach(marksLen+off, n))
	return d.unseen
}

// write writes all of a chunk, of which nothing is read.
func (c *CatchUp) write(at uint64, b []byte) error {
	d, off := c.disk, int(at)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut(off, off+len(b), ^uint64(0))
	d.unseen = cmp.Or(d.unseen, d.write(marksLen+off, b))
	return d.unseen
}

// took notes that a chunk is right.
func (c *CatchUp) took(off uint64) {
	d := c.disk
	n := len(d.chunk(off))
	d.mu.Lock()
	d.wrote(int(off), n)
	d.changed.wrote(int(off), n, c.from.Whole)
	d.mu.Unlock()
	c.done += uint64(n)
}

// Put takes a chunk that Next returned as it is on the other replica now, with the last entry that it may have. One that was
// damaged on its way Next returns once more.
func (c *CatchUp) Put(chunk Chunk, index uint64, b []byte) error {
	if _, is := c.under[chunk.Off]; !is {
		return fmt.Errorf("state: no chunk at %d is missing", chunk.Off)
	}
	if len(b) != len(c.disk.chunk(chunk.Off)) {
		return fmt.Errorf("state: a chunk of %d bytes at %d", len(b), chunk.Off)
	}
	delete(c.under, chunk.Off)
	if c.from.Whole = max(c.from.Whole, index); entry.Sum(b) != chunk.CRC {
		c.from.Chunks = append(c.from.Chunks, chunk)
		return nil
	}
	if err := c.write(chunk.Off, b); err != nil {
		return err
	}
	c.took(chunk.Off)
	return nil
}

// Progress is how many of all bytes of the round are right.
func (c *CatchUp) Progress() (done, all uint64) { return c.done, c.all }

// Flush makes the chunks stable that are right, so that Finish takes no longer than a moment.
func (c *CatchUp) Flush() error {
	d := c.disk
	d.marking.Lock()
	defer d.marking.Unlock()
	begin, end, _ := d.written()
	if d.failed == nil && begin != end {
		if err := d.store.Flush(marksLen+begin, end-begin); err != nil {
			d.failed = fmt.Errorf("state: %w", err)
		}
	}
	return d.failed
}

// written is what was written since the last time, and the zeros that were not.
func (d *Disk) written() (begin, end int, left blanks) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bound()
	begin, end = d.begin, d.end
	d.begin, d.end, d.zeroed = 0, 0, 0
	return begin, end, slices.Clone(d.blanks)
}

// Finish makes the blocks stable, once Next has no more chunks. The disk then has the
// snapshot's entry, and is whole when it has applied all that a chunk may have.
func (c *CatchUp) Finish() error {
	d := c.disk
	d.marking.Lock()
	defer d.marking.Unlock()
	begin, end, left := d.written()
	d.mu.Lock()
	err := d.unseen
	if err == nil && !c.right() {
		err = fmt.Errorf("%w: %d of %d bytes", ErrCatchingUp, c.done, c.all)
	}
	m := mark{blanks: left, index: c.from.Index, term: c.from.Term, whole: max(c.from.Whole, d.whole, d.applied)}
	d.mu.Unlock()
	if err == nil {
		err = d.makeStable(m, begin, end)
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note(m.index, m.term)
	d.whole, d.since = m.whole, m.index
	d.catches(false)
	return nil
}
