package mem

// This file has the end of a pool, which comes in two steps. The end of its region ends its
// use: no buffer is got, and the device uses none. The last buffer that comes back frees
// its memory.
//
// All buffers that nobody has are on the lists of free ones. So collect takes what is
// there and counts it, and whoever it is that takes the last one knows that nobody has a
// buffer any more. A buffer on its way out of a list counts as taken already.
//
// No buffer is left on a list. The end sets isOver and then looks at the lists; who gives
// a buffer back puts it on a list, by a locked instruction, and then looks at end. So
// one of the two sees what the other did, and collects.

// The bits of BufferPool.end.
const (
	isWatched uint32 = 1 << iota // somebody waits until the program has no buffer
	isOver                       // the device does not use the memory any more
)

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
	p.end.Or(isOver)
	for i := range p.buffers {
		if b := &p.buffers[i]; b.owner.PutOperations() {
			b.give()
		}
	}
	return p.collect()
}

func (p *BufferPool) isOver() bool { return p.end.Load()&isOver != 0 }

// hasBack is called behind each buffer that came back.
func (p *BufferPool) hasBack() {
	if p.end.Load() != 0 {
		p.hasBackLate()
	}
}

// hasBackLate is hasBack of a pool that is over, or that somebody watches.
func (p *BufferPool) hasBackLate() {
	if p.isOver() {
		_ = p.collect() // a range that the system refuses to unmap stays the domain's
	}
	if p.end.Load()&isWatched != 0 {
		select {
		case p.returns <- struct{}{}:
		default: // the watcher has not taken the last one, and looks anyway
		}
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
			p.lmr.block.users.Add(-1)
			return p.lmr.pz.domain.unmap(p.lmr.block)
		}
	}
}
