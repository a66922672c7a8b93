package mem

import (
	"godat/internal/door"
	"godat/internal/memory"
)

// Own is a pool for the connection of package runtime that made it, whose operations have buffers by
// their tags: so an operation that completes late takes back no buffer that has gone elsewhere. No
// program can get one.
type Own struct{ pool *BufferPool }

// Own returns the pool for its connection, which calls it before all other methods, with the number of
// buffers that are for the program: Get and Wait give those alone, and LendAll the others.
func (p *BufferPool) Own(_ door.Key, apart int) Own {
	p.setApart(apart)
	return Own{p}
}

// lendAtOnce is the most buffers that LendAll takes from the free ones by one swap.
const lendAtOnce = 16

// LendAll gives up to len(tags) buffers that are not set apart to operations, with their whole
// length, and those set apart when none of the others is free. It returns how many there were, and
// the tags by which PutBack and TakeBack take them back, each with the bits of mark; the low 32 bits
// of a tag are the buffer's index.
func (o Own) LendAll(mark uint64, tags []uint64) (n int) {
	p := o.pool
	var free [lendAtOnce]uint32
	for n < len(tags) && !p.lmr.dead.Load() {
		some := free[:min(lendAtOnce, len(tags)-n)]
		some = some[:p.free.TakeAll(some)]
		for i, index := range some {
			tags[n+i] = mark | p.lend(&p.buffers[index])
		}
		if len(some) == 0 && !p.join() {
			break
		}
		n += len(some)
	}
	return n
}

// AnyFree reports whether LendAll would find a buffer.
func (o Own) AnyFree() bool {
	p := o.pool
	return !p.lmr.dead.Load() && (!p.free.Empty() || !p.list.Empty())
}

// lend gives an operation a buffer that was free. From then on the end of the pool may take
// the buffer back, so the watch looks at its memory before.
func (p *BufferPool) lend(b *Buffer) (tag uint64) {
	b.n = p.size
	if p.watch != nil {
		p.watch.got(b)
	}
	return b.owner.GetLent()
}

// Lend gives an operation a buffer of the program's; false if the program has it not.
func (Own) Lend(b *Buffer) (tag uint64, ok bool) { return b.owner.Lend() }

// TakeBack is [Buffer.Return] of a buffer that the operation with that tag has; false if it has it
// not.
func (Own) TakeBack(b *Buffer, tag uint64, n int) bool {
	if !b.owner.Return(tag & memory.TagMask) {
		return false
	}
	b.pool.watch.took(b)
	b.n = len(b.memory()[:n])
	return true
}

// PutBack gives the pool a buffer that the operation with that tag has; false if it has it not.
func (Own) PutBack(b *Buffer, tag uint64) bool {
	if !b.owner.PutLent(tag & memory.TagMask) {
		return false
	}
	b.give()
	return true
}

// InUse counts the buffers that the program has, and those that it gave to operations under way. If it finds
// none, there was none at one moment: a program that takes a buffer before it gives its last one back has
// one all the time, though one look at all buffers may miss both. Nobody takes a buffer without a new turn.
// So InUse looks twice: if the turns are the same, those that nobody had were so from the first look to the
// second.
func (o Own) InUse() (held, sending int) {
	for {
		s, turns := o.pool.count()
		if s.Held+s.Sending > 0 {
			return s.Held, s.Sending
		}
		if _, again := o.pool.count(); again == turns {
			return 0, 0
		}
	}
}

// Returns is a channel that brings a value when a buffer has come back since the last one; all calls
// return the same, so each value is for one of several receivers. A caller that takes Returns, then asks
// InUse, and again at each value, sees when nobody has a buffer any more: a holder gives a buffer to the
// pool, or to a send that gives it to the pool, which then looks whether anybody watches.
func (o Own) Returns() <-chan struct{} {
	p := o.pool
	p.waiters.mu.Lock()
	defer p.waiters.mu.Unlock()
	if p.returns == nil {
		p.returns = make(chan struct{}, 1)
		p.end.Or(isWatched)
	}
	return p.returns
}

// IsOver reports whether the device uses no buffer any more. Buffers that operations had
// have come back then; one that is given to an operation later has to be given back by
// whoever did that.
func (o Own) IsOver() bool { return o.pool.isOver() }
