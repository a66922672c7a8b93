package mem

import (
	"godat/hw"
	"godat/internal/door"
)

// This file has the end of a pool, which comes in two steps. The end of its region ends its
// use: no buffer is got, and the device uses none. The last buffer that comes back frees
// its memory.
//
// All buffers that nobody has are on the lists of free ones. So collect takes what is
// there and counts it, and whoever it is that takes the last one knows that nobody has a
// buffer any more. A buffer on its way out of a list counts as taken already.
//
// No buffer is left on a list. The end sets isOver and then looks at the lists; who gives
// a buffer back puts it on a list, by a locked instruction, and then looks at isOver. So
// one of the two sees what the other did, and collects.

// begun does nothing: the pool is not complete yet.
func (p *BufferPool) begun(*LMR) {}

// dying ends all calls that wait for a buffer.
func (p *BufferPool) dying() {
	p.waiters.wakeAll()
	p.waiting.wakeAll()
}

// ended frees the memory if the program has no buffer. What operations of a connection
// have comes back here: none of them uses the memory any more, and those that have
// completed brought messages that the program did not take.
func (p *BufferPool) ended(*LMR) error {
	p.isOver.Store(true)
	for i := range p.buffers {
		if b := &p.buffers[i]; b.owner.PutOperations() {
			b.give()
		}
	}
	return p.collect()
}

// IsOver reports whether the device uses no buffer any more. Buffers that operations had
// have come back then; one that is given to an operation later has to be given back by
// whoever did that. Only a connection of package runtime calls it.
func (p *BufferPool) IsOver(door.Key) bool { return p.isOver.Load() }

func (p *BufferPool) collectIfOver() {
	if p.isOver.Load() {
		_ = p.collect() // a range that the system refuses to unmap stays the domain's
	}
}

// collect takes what is free for good, and frees the memory behind the last buffer.
func (p *BufferPool) collect() error {
	for {
		_, ok := p.list.Take()
		if !ok {
			_, ok = p.free.Take()
		}
		if !ok {
			return nil
		}
		if int(p.back.Add(1)) == len(p.buffers) {
			return p.unmap()
		}
	}
}

func (p *BufferPool) unmap() error {
	p.lmr.block.users.Add(-1)
	return p.lmr.pz.domain.unmap(p.lmr.block)
}

// leakError is the error for a buffer that was never put.
func leakError(text string) error {
	return &hw.Error{Op: "mem.BufferPool.Close", Type: hw.InvalidState, Sub: hw.StateLMRInUse, Text: text}
}
