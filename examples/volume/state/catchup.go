package state

import (
	"cmp"
	"fmt"
	"slices"

	"godat/examples/volume/entry"
)

// CatchUp makes a disk that of another replica's snapshot, chunk by chunk, and of later ones in further rounds. One
// goroutine owns it. If it does not finish, also because of a crash, the disk stays one that is
// catching up, and another CatchUp goes on: chunks that are right are not read again.
type CatchUp struct {
	disk *Disk
	from Snapshot // without the chunks that are right
	done uint64   // bytes of this round's chunks
	all  uint64
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
	c := &CatchUp{disk: d}
	if err := c.Round(s); err != nil {
		return nil, err
	}
	m := d.mark
	m.catching = true
	d.mu.Lock()
	d.catching, d.sums = true, nil
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
	case len(c.from.Chunks) != 0:
		return ErrCatchingUp
	}
	s.Chunks, s.Whole = slices.Clone(s.Chunks), max(s.Whole, c.from.Whole)
	c.from, c.done, c.all = s, 0, 0
	for _, chunk := range s.Chunks {
		c.all += uint64(len(d.chunk(chunk.Off)))
	}
	return nil
}

// Next is the next chunk that differs, and where its bytes go; ok is false after the last.
// The caller gets the bytes from the other replica, says so with Renew, and calls Next again. If Next returns the
// same chunk once more, the bytes were damaged on their way.
func (c *CatchUp) Next() (chunk Chunk, to []byte, ok bool) {
	d := c.disk
	for len(c.from.Chunks) != 0 {
		chunk = c.from.Chunks[0]
		if c.renewChunk(chunk) != nil {
			return Chunk{}, nil, false // Finish says why
		}
		switch to = d.chunk(chunk.Off); {
		case !chunk.Zero && entry.Sum(to) != chunk.CRC:
			return chunk, to, true
		case chunk.Zero && !allZero(to):
			clear(to)
		}
		d.mu.Lock()
		d.wrote(int(chunk.Off), len(to))
		d.changed.wrote(int(chunk.Off), len(to), c.from.Whole)
		d.mu.Unlock()
		c.done += uint64(len(to))
		c.from.Chunks = c.from.Chunks[1:]
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.since = c.from.Index
	return Chunk{}, nil, false
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

// Renew takes the chunk that Next returned as it is on the other replica now, with the last
// entry that it may have.
func (c *CatchUp) Renew(chunk Chunk, index uint64) error {
	if len(c.from.Chunks) == 0 || c.from.Chunks[0].Off != chunk.Off {
		return fmt.Errorf("state: no chunk at %d is missing", chunk.Off)
	}
	c.from.Chunks[0] = chunk // of a list that is this one's own
	c.from.Whole = max(c.from.Whole, index)
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
	begin, end = d.begin, d.end
	d.begin, d.end, d.zeroed = 0, 0, 0
	return begin, end, slices.Clone(d.blanks)
}

// Finish makes the blocks stable, once Next has no more chunks. The disk then has the
// snapshot's entry, and is whole when it has applied all that a chunk may have.
func (c *CatchUp) Finish() error {
	d := c.disk
	if len(c.from.Chunks) != 0 {
		return fmt.Errorf("%w: %d of %d bytes", ErrCatchingUp, c.done, c.all)
	}
	d.marking.Lock()
	defer d.marking.Unlock()
	begin, end, left := d.written()
	d.mu.Lock()
	err := d.unseen
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
	d.whole, d.since, d.catching = m.whole, m.index, false
	return nil
}
