package mem

import (
	"sync/atomic"

	"godat/internal/door"
	"godat/internal/freelist"
	"godat/internal/owner"
	"godat/internal/release"
	"godat/internal/yield"
)

// apart has the buffers of a pool that a connection has set apart for its program. There
// are always so many, on the list, with the program or with an operation of it; so the
// program has that many at most, and nobody needs to count them.
//
// The receives of the connection take a buffer of the list only when no other one is
// free. It joins the others then, and when the program wants one more than there are on
// the list, one of the others leaves them in its place.
type apart struct {
	list   freelist.List
	joined atomic.Int32 // how many have joined the others, and none has left them in their place

	// The index, plus one, of a buffer that a send gave back; 0 for none. Who takes the
	// buffer makes it 0 by a swap. The completer of the sends alone makes it another
	// number, and only where it finds 0, so that takes a plain store: until then nobody
	// else changes it.
	sent      atomic.Uint32
	completer owner.Tag
}

// SetApart sets so many of the free buffers apart, for GetApart. Only a connection of
// package runtime calls the two, and SetApart once, before all other methods.
func (p *BufferPool) SetApart(_ door.Key, n int) {
	p.list.InitEmpty(len(p.buffers))
	for range n {
		if b := p.take(); b != nil {
			b.isApart = true
			p.list.Give(b.index)
		}
	}
	p.collectIfOver()
}

// GetApart is Get of a buffer that is set apart. It comes back there, whoever puts it.
func (p *BufferPool) GetApart(door.Key) *Buffer {
	if p == nil || p.lmr.dead.Load() {
		return nil
	}
	i, ok := p.takeApart()
	if !ok {
		if i, ok = p.leave(); !ok {
			return nil
		}
	}
	return p.got(&p.buffers[i])
}

// takeApart takes a buffer that is set apart.
func (p *BufferPool) takeApart() (i uint32, ok bool) {
	i = p.sent.Load()
	yield.Point()
	if i != 0 && p.sent.CompareAndSwap(i, 0) {
		return i - 1, true
	}
	return p.list.Take()
}

// FreeSent is Free for the goroutine that completes the sends of a connection. The pool ends
// behind the endpoint, whose close waits for the last completion: so it needs no look
// whether the pool is over.
func (b *Buffer) FreeSent(k door.Key) {
	p := b.pool
	if p.watch != nil || !b.isApart || p.sent.Load() != 0 {
		b.Free(k)
		return
	}
	p.completer.Acquire()
	release.Uint32(&p.sent, b.index+1)
	p.completer.Release()
}

// join moves a buffer that is set apart to the free ones; false if there is none.
func (p *BufferPool) join() bool {
	i, ok := p.takeApart()
	if ok {
		p.buffers[i].isApart = false
		p.joined.Add(1)
		p.giveBack(i)
	}
	return ok
}

// leave takes a free buffer in place of one that has joined the free ones.
func (p *BufferPool) leave() (i uint32, ok bool) {
	for {
		n := p.joined.Load()
		if n == 0 {
			return 0, false
		}
		if !p.joined.CompareAndSwap(n, n-1) {
			continue
		}
		if i, ok = p.free.Take(); !ok {
			p.joined.Add(1)
			return 0, false
		}
		p.buffers[i].isApart = true
		return i, true
	}
}

// give gives the pool back a buffer that was put.
func (p *BufferPool) give(b *Buffer) {
	if b.isApart {
		p.list.Give(b.index)
		p.collectIfOver()
	} else {
		p.giveBack(b.index)
	}
}
