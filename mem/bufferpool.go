package mem

import (
	"errors"
	"math"
	"sync/atomic"

	"godat/hw"
	"godat/internal/freelist"
)

// BufferPoolConfig says what a pool of buffers is made of.
type BufferPoolConfig struct {
	Count int // buffers
	Size  int // bytes of each buffer
	// Privileges are those of the memory; 0 means LocalRead and LocalWrite, so that
	// no peer can access the buffers.
	Privileges hw.Privileges
	// Debug makes the pool watch its buffers. It records the stack of each Get and
	// Put. It panics, with both stacks, if a buffer is used while it belongs to the
	// pool or to an operation, or if its memory changed while it was in the pool;
	// and Close names the holders of buffers that were never put. It costs a stack
	// trace and a pass over the memory for each Get and each Put.
	Debug bool
}

// BufferPool is registered memory cut into buffers of one size, which a program
// gets and puts; each buffer has one owner at a time. Its methods may be called
// from any goroutine. Get and Put allocate nothing, and without Debug take no lock unless
// somebody waits for a buffer.
type BufferPool struct {
	// Immutable after NewBufferPool.
	lmr     *LMR
	number  uint64
	buffers []Buffer
	size    int    // bytes of each
	step    int    // bytes from the beginning of each to that of the next
	watch   *watch // nil unless Debug

	free    freelist.List
	closed  atomic.Bool
	waiters waiters
	apart
	looks looks

	made    atomic.Bool   // it is complete
	end     atomic.Uint32 // isWatched and isOver; whoever gives a buffer back looks at it
	returns chan struct{} // see Returns; made before isWatched is set
	back    atomic.Int32  // buffers that collect has taken, behind the end
}

// stride divides the distance between two buffers: a cache line, so that two owners
// never write to the same one.
const stride = 64

// NewBufferPool makes a pool with a region of its own, which counts among the
// zone's regions. It may block. A Count below 1 or above 1<<20, or a Size
// below 1, is LENGTH_ERROR; other errors are those of [PZ.Alloc].
func (p *PZ) NewBufferPool(cfg BufferPoolConfig) (*BufferPool, error) {
	const op = "mem.NewBufferPool"
	var wrong error
	size, step := 0, (cfg.Size+stride-1)/stride*stride
	if cfg.Count < 1 || cfg.Size < 1 || cfg.Count > mostBuffers || cfg.Size > math.MaxInt/cfg.Count-stride {
		wrong = hw.Errorf(op, hw.LengthError, hw.NoSubtype,
			"%d buffers of %d bytes; there may be 1 to %d, together as large as a region", cfg.Count, cfg.Size, mostBuffers)
	} else {
		size = step * cfg.Count
	}
	if cfg.Privileges == hw.NoPrivileges {
		cfg.Privileges = hw.LocalRead | hw.LocalWrite
	}
	if err := p.begin(op, size, cfg.Privileges, wrong); err != nil {
		return nil, err
	}
	defer p.domain.gate.RUnlock() // until the pool is complete, so that the domain's close meets no half of one
	b := &BufferPool{number: poolNumbers.Add(1)}
	lmr, err := p.alloc(op, size, cfg.Privileges, config{unmap: true}, b)
	if err != nil {
		return nil, err
	}
	b.lmr, b.buffers, b.size, b.step = lmr, make([]Buffer, cfg.Count), cfg.Size, step
	if cfg.Debug {
		b.watch = &watch{traces: make([]traces, cfg.Count)}
	}
	for i := range b.buffers {
		b.buffers[i] = Buffer{pool: b, index: uint32(i)}
		b.buffers[i].owner.Init(uint32(i))
	}
	b.free.Init(cfg.Count)
	b.made.Store(true)
	return b, nil
}

// mostBuffers is the most buffers of a pool.
const mostBuffers = 1 << 20

// Get returns a free buffer, with length 0. It returns nil if none is free, or if
// the pool is nil or closed, by itself or with its adapter. See [BufferPool.Wait].
func (p *BufferPool) Get() *Buffer { return p.get(p.setsApart()) }

// get is Get of a buffer that is free, or of one that is set apart.
func (p *BufferPool) get(apart bool) *Buffer {
	i, ok := p.take(apart)
	if !ok {
		return nil
	}
	return p.got(&p.buffers[i])
}

// got gives the caller a buffer that was free.
func (p *BufferPool) got(b *Buffer) *Buffer {
	b.n = 0
	b.owner.Get()
	if p.watch != nil {
		p.watch.got(b)
	}
	return b
}

// take takes a buffer that is free, or one that is set apart.
func (p *BufferPool) take(apart bool) (index uint32, ok bool) {
	if p == nil || p.lmr == nil || p.lmr.dead.Load() {
		return 0, false
	}
	if !apart {
		return p.free.Take()
	}
	if index, ok = p.list.Take(); !ok {
		index, ok = p.leave()
	}
	return index, ok
}

// At returns the buffer with that index; nil for an index that no buffer has, and
// for a nil pool. It does not check that the caller holds the buffer. A program
// puts [Buffer.Index] into a cookie and finds the buffer again by At.
func (p *BufferPool) At(index int) *Buffer {
	if p == nil || uint(index) >= uint(len(p.buffers)) {
		return nil
	}
	return &p.buffers[index]
}

// Close ends the pool: it gives out no buffer any more, and operations that use one fail
// as [LMR.Free] says. A buffer that the program has taken, or lent to an operation, is
// still its own, with its memory, until it puts the buffer; the last one frees the memory.
// Close does not wait for that. Under Debug it returns an error that names the holders of
// buffers that were not put so far. Closing a closed pool does nothing.
func (p *BufferPool) Close() error {
	if p == nil || p.lmr == nil {
		return deadLMR("mem.BufferPool.Close")
	}
	var leaks error
	if !p.closed.Swap(true) && p.watch != nil {
		leaks = p.watch.leaks(p)
	}
	return errors.Join(leaks, p.lmr.end())
}
