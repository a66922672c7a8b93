package mem

import (
	"sync/atomic"

	"godat/internal/freelist"
	"godat/internal/yield"
)

// apart has the buffers of a pool that a connection has set apart for its program. There
// are always so many, on the list, with the program or with an operation of it; so nobody
// needs to count those that the program has.
//
// The receives of the connection take a buffer of the list only when no other one is
// free. It joins the others then, and when the program wants one more than there are on
// the list, one of the others leaves them in its place.
type apart struct {
	list   freelist.List
	are    bool         // written before a caller has the pool
	joined atomic.Int32 // how many have joined the others, and none has left them in their place

	waiting waiters // calls that wait for one of them
}

// setApart sets so many of the free buffers apart, for Get and Wait. They come back there, whoever
// puts them.
func (p *BufferPool) setApart(n int) {
	p.are = true
	p.list.InitEmpty(len(p.buffers))
	for range n {
		if i, ok := p.take(false); ok {
			p.buffers[i].isApart = true
			p.list.Give(i)
		}
	}
	p.hasBack()
}

// setsApart reports whether Get and Wait give buffers that are set apart.
func (p *BufferPool) setsApart() bool { return p != nil && p.are }

// join moves a buffer that is set apart to the free ones; false if there is none.
func (p *BufferPool) join() bool {
	i, ok := p.list.Take()
	if ok {
		p.buffers[i].isApart = false
		p.joined.Add(1)
		p.giveBack(i)
	}
	return ok
}

// leave takes a free buffer in place of one that has joined the free ones. When there is none, it
// raises joined again and then looks once more: a goroutine that gives a buffer back puts it on the
// list and then looks at joined, so one of the two finds the other.
func (p *BufferPool) leave() (i uint32, ok bool) {
	for {
		n := p.joined.Load()
		if n == 0 {
			return 0, false
		}
		if !p.joined.CompareAndSwap(n, n-1) {
			continue
		}
		yield.Point()
		if i, ok = p.free.Take(); !ok {
			yield.Point()
			p.joined.Add(1)
			yield.Point()
			if p.free.Empty() {
				return 0, false
			}
			continue // who gave it back may have seen joined too low, and left it here
		}
		p.buffers[i].isApart = true
		return i, true
	}
}

// give gives the pool back a buffer that was put.
func (p *BufferPool) give(b *Buffer) {
	if !b.isApart {
		p.giveBack(b.index)
		return
	}
	p.list.Give(b.index)
	yield.Point()
	if p.waiting.n.Load() != 0 {
		p.serve(true)
	}
	p.hasBack()
}
