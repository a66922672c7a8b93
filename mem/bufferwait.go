package mem

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"godat/hw"
	"godat/internal/yield"
)

// Wait is Get that waits until a buffer is free. Calls that wait get buffers in the order
// in which they came; a Get meanwhile may be faster. Wait allocates nothing unless it has
// to wait.
//
// When ctx ends first, the error is its cause. When the pool is closed, by itself or with
// its adapter, the error is INVALID_HANDLE/LMR, as for a nil pool, also of calls that wait
// then. A nil ctx is INVALID_PARAMETER.
func (p *BufferPool) Wait(ctx context.Context) (*Buffer, error) {
	const op = "mem.BufferPool.Wait"
	switch {
	case p == nil || p.lmr == nil:
		return nil, deadLMR(op)
	case ctx == nil:
		return nil, hw.Errorf(op, hw.InvalidParameter, hw.Arg1, "the context is nil")
	}
	apart := p.setsApart()
	waiting := p.those(apart)
	if waiting.n.Load() == 0 {
		if b := p.get(apart); b != nil {
			return b, nil
		}
	}
	w := p.queueUp(apart)
	select {
	case index := <-w:
		return p.waited(op, index)
	case <-ctx.Done():
		if waiting.remove(w) {
			return nil, context.Cause(ctx)
		}
		return p.waited(op, <-w) // which is there
	}
}

// those are the calls that wait for a buffer of either kind.
func (p *BufferPool) those(apart bool) *waiters {
	if apart {
		return &p.waiting
	}
	return &p.waiters
}

// waited is the buffer that a waiter was given.
func (p *BufferPool) waited(op string, index int) (*Buffer, error) {
	if index == noBuffer {
		return nil, deadLMR(op)
	}
	return p.got(&p.buffers[index]), nil
}

// waiter takes the index of a buffer, or noBuffer. It has room for it.
type waiter chan int

const noBuffer = -1

// waiters are the calls that wait for a buffer of a pool. Any goroutine may call the
// methods.
//
// A goroutine that gives a buffer back looks at n afterwards, and a goroutine that waits
// looks for a free buffer after it has counted itself in n. So one of them finds the
// other: no call waits while a buffer is free. The same holds for the end of the pool,
// with dead in place of a free buffer. Its model is check/models/pool.pml.
//
// A semaphore of golang.org/x/sync beside the list of free buffers would not do. Each Get and Put would take
// its lock, which they do not; a buffer that is set apart may serve one that waits for another kind; what
// waits gets a buffer, not the right to look for one that others may have taken; and the end of the pool
// ends all waits at once.
type waiters struct {
	n atomic.Int32 // length of queue; written under mu

	mu    sync.Mutex
	queue []waiter // in the order in which they came
}

// queueUp makes the caller wait.
func (p *BufferPool) queueUp(apart bool) waiter {
	w := make(waiter, 1)
	p.those(apart).add(w)
	yield.Point()
	if p.lmr.dead.Load() {
		p.those(apart).wakeAll()
	} else {
		p.serve(apart)
	}
	return w
}

// giveBack makes a buffer free. One that is free may take the place of one that is set
// apart.
func (p *BufferPool) giveBack(index uint32) {
	p.free.Give(index)
	yield.Point()
	if p.waiters.n.Load() != 0 {
		p.serve(false)
	}
	if p.waiting.n.Load() != 0 {
		p.serve(true)
	}
	p.hasBack()
}

// serve hands buffers to those that wait. When there was none left to take the buffer,
// another may have come before the buffer was back, so serve looks again.
func (p *BufferPool) serve(apart bool) {
	for w := p.those(apart); w.n.Load() != 0; {
		i, ok := p.take(apart)
		if !ok {
			return
		}
		yield.Point()
		if w.hand(int(i)) {
			continue
		}
		yield.Point()
		if apart {
			p.list.Give(i)
		} else {
			p.free.Give(i)
		}
		yield.Point()
		p.hasBack()
	}
}

func (w *waiters) add(one waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, one)
	w.n.Add(1)
}

// hand hands a buffer to the first that waits; false if none does.
func (w *waiters) hand(index int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return false
	}
	w.queue[0] <- index
	w.queue = slices.Delete(w.queue, 0, 1)
	w.n.Add(-1)
	return true
}

// remove takes a waiter away, and reports whether it was there still.
func (w *waiters) remove(one waiter) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.queue, one)
	if i < 0 {
		return false
	}
	w.queue = slices.Delete(w.queue, i, i+1)
	w.n.Add(-1)
	return true
}

// wakeAll tells all that wait that the pool is closed.
func (w *waiters) wakeAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, one := range w.queue {
		one <- noBuffer
	}
	w.queue = nil
	w.n.Store(0)
}
