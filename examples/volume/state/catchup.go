package state

import (
	"fmt"
	"slices"

	"godat/examples/volume/entry"
)

// CatchUp makes a disk that of another replica's snapshot, chunk by chunk. One goroutine
// owns it. If it does not finish, also because of a crash, the disk stays one that is
// catching up, and another CatchUp goes on: chunks that are right are not read again.
type CatchUp struct {
	disk *Disk
	from Snapshot // without the chunks that are right
	at   uint64   // the offset of the next chunk
}

// CatchUp begins to catch up, and notes that for good.
func (d *Disk) CatchUp(s Snapshot) (*CatchUp, error) {
	d.marking.Lock()
	defer d.marking.Unlock()
	if s.Size != uint64(len(d.blocks)) {
		return nil, fmt.Errorf("state: a snapshot of %d bytes for %d", s.Size, len(d.blocks))
	}
	if s.Index < d.mark.index {
		return nil, fmt.Errorf("state: a snapshot of entry %d for a disk that has released entry %d", s.Index, d.mark.index)
	}
	m := d.mark
	m.catching = true
	d.mu.Lock()
	d.catching = true
	d.mu.Unlock()
	s.Chunks = slices.Clone(s.Chunks)
	return &CatchUp{disk: d, from: s}, d.makeStable(m, 0, 0)
}

// Next is the next chunk that differs, and where its bytes go; ok is false after the last.
// The caller gets the bytes from the other replica and calls Next again. If Next returns the
// same chunk once more, the bytes are others: the chunk has changed, or was damaged on its way.
func (c *CatchUp) Next() (chunk Chunk, to []byte, ok bool) {
	for ; c.at < c.from.Size; c.at += chunkLen {
		to = c.disk.chunk(c.at)
		if len(c.from.Chunks) == 0 || c.from.Chunks[0].Off != c.at {
			if !allZero(to) {
				clear(to)
			}
			continue
		}
		if chunk = c.from.Chunks[0]; entry.Sum(to) != chunk.CRC {
			return chunk, to, true
		}
		c.from.Chunks = c.from.Chunks[1:]
	}
	return Chunk{}, nil, false
}

// Renew takes the chunk that Next returned as it is on the other replica now, with the last
// entry that it may have.
func (c *CatchUp) Renew(chunk Chunk, index uint64) error {
	if len(c.from.Chunks) == 0 || c.from.Chunks[0].Off != chunk.Off {
		return fmt.Errorf("state: chunk at %d, and not at %d", chunk.Off, c.at)
	}
	c.from.Chunks[0] = chunk // of a list that is this one's own
	c.from.Whole = max(c.from.Whole, index)
	return nil
}

// Progress is how many of all bytes are right.
func (c *CatchUp) Progress() (done, all uint64) { return min(c.at, c.from.Size), c.from.Size }

// Flush makes the blocks stable, so that Finish takes no longer than a moment.
func (c *CatchUp) Flush() error {
	d := c.disk
	d.marking.Lock()
	defer d.marking.Unlock()
	if d.failed == nil {
		if err := d.store.Flush(marksLen, len(d.blocks)); err != nil {
			d.failed = fmt.Errorf("state: %w", err)
		}
	}
	return d.failed
}

// Finish makes the blocks stable, once Next has no more chunks. The disk then has the
// snapshot's entry, and is whole when it has applied all that a chunk may have.
func (c *CatchUp) Finish() error {
	d := c.disk
	if c.at < c.from.Size {
		return fmt.Errorf("%w: %d of %d bytes", ErrCatchingUp, c.at, c.from.Size)
	}
	d.marking.Lock()
	defer d.marking.Unlock()
	m := mark{index: c.from.Index, term: c.from.Term, whole: c.from.Whole}
	if err := d.makeStable(m, 0, len(d.blocks)); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.applied, d.term, d.whole, d.catching = m.index, m.term, m.whole, false
	d.begin, d.end = 0, 0
	return nil
}
