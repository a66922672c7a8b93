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
	Size  int // bytes of each
	// Privileges are those of the memory; 0 means LocalRead and LocalWrite, so that
	// no peer reaches the buffers.
	Privileges hw.Privileges
	// Debug has the pool watch over its buffers. It records who gets and who puts
	// each; it panics, naming them, when a buffer is used while the pool or an
	// operation has it, or when its memory changed while the pool had it; and Close
	// names the holders of buffers that were never put. It costs a stack trace and a
	// pass over the memory for each Get and each Put.
	Debug bool
}

// BufferPool is registered memory cut into buffers of one size, which a program
// gets and puts: each has one owner at a time. Its methods may be called from any
// goroutine; Get and Put take no lock and allocate nothing.
type BufferPool struct {
	// Immutable after NewBufferPool.
	lmr     *LMR
	buffers []Buffer
	watch   *watch // nil unless Debug

	free   freelist.List
	closed atomic.Bool
}

// stride is what the distance between two buffers is a multiple of: a cache line,
// so that two owners do not write to the same one.
const stride = 64

// NewBufferPool makes a pool with a region of its own, which counts among the
// zone's. It may block. A count or size below 1 is LENGTH_ERROR; other errors are
// those of [PZ.Alloc].
func (p *PZ) NewBufferPool(cfg BufferPoolConfig) (*BufferPool, error) {
	const op = "mem.NewBufferPool"
	if cfg.Count < 1 || cfg.Size < 1 || cfg.Count > MaxBuffers || cfg.Size > math.MaxInt/cfg.Count-stride {
		return nil, p.begin(op, 0, cfg.Privileges, hw.Errorf(op, hw.LengthError, hw.NoSubtype,
			"%d buffers of %d bytes; there may be 1 to %d, together as large as a region", cfg.Count, cfg.Size, MaxBuffers))
	}
	if cfg.Privileges == hw.NoPrivileges {
		cfg.Privileges = hw.LocalRead | hw.LocalWrite
	}
	step := (cfg.Size + stride - 1) / stride * stride
	lmr, err := p.Alloc(step*cfg.Count, cfg.Privileges, WithUnmapOnFree())
	if err != nil {
		return nil, err
	}
	b := &BufferPool{lmr: lmr, buffers: make([]Buffer, cfg.Count)}
	if cfg.Debug {
		b.watch = newWatch(cfg.Count)
	}
	for i := range b.buffers {
		at := i * step
		b.buffers[i] = Buffer{pool: b, index: uint32(i), at: at, memory: lmr.buf[at : at+cfg.Size : at+cfg.Size]}
		b.watch.poison(&b.buffers[i])
	}
	b.free.Init(cfg.Count)
	return b, nil
}

// MaxBuffers is the most buffers of a pool.
const MaxBuffers = 1 << 20

// Get takes a buffer, whose length is 0; nil when none is free, and of a pool that is
// nil or closed, by itself or with its adapter.
func (p *BufferPool) Get() *Buffer {
	if p == nil || p.lmr.dead.Load() {
		return nil
	}
	i, ok := p.free.Take()
	if !ok {
		return nil
	}
	b := &p.buffers[i]
	b.n, b.out = 0, true
	if p.watch != nil {
		p.watch.got(b)
	}
	return b
}

// At is the buffer with that index, which is in no way checked to be the caller's:
// a program that puts [Buffer.Index] into a cookie finds the buffer again by it. It is
// nil for an index that no buffer has, as of a nil pool.
func (p *BufferPool) At(index int) *Buffer {
	if p == nil || uint(index) >= uint(len(p.buffers)) {
		return nil
	}
	return &p.buffers[index]
}

// Close frees the memory. Buffers that the program still has may not be used from
// then on, and operations that have one fail as [LMR.Free] says. Under Debug it returns an
// error that names the holders. Closing it again does nothing.
func (p *BufferPool) Close() error {
	if p == nil {
		return deadLMR("mem.BufferPool.Close")
	}
	var leaks error
	if !p.closed.Swap(true) && p.watch != nil {
		leaks = p.watch.leaks(p)
	}
	return errors.Join(leaks, p.lmr.Free())
}
