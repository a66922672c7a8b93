package mem

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// watch is the debugging part of a pool. A nil watch does nothing.
type watch struct {
	mu     sync.Mutex
	traces []traces // one for each buffer; guarded by mu
}

// traces are the stacks that last got and last put a buffer.
type traces struct{ got, put trace }

// trace is a stack, cut off at its capacity.
type trace struct {
	pcs [12]uintptr
	n   int
}

// poison fills the memory of a buffer while it is in the pool.
const poison = 0xdb

func newWatch(n int) *watch { return &watch{traces: make([]traces, n)} }

// record records the stack of the caller of the pool.
func (t *trace) record() { t.n = runtime.Callers(4, t.pcs[:]) }

func (t *trace) String() string {
	if t.n == 0 {
		return "  nobody\n"
	}
	var b strings.Builder
	frames := runtime.CallersFrames(t.pcs[:t.n])
	for {
		f, more := frames.Next()
		fmt.Fprintf(&b, "  %s\n      %s:%d\n", f.Function, f.File, f.Line)
		if !more {
			return b.String()
		}
	}
}

// got checks that nothing wrote to the buffer while it was in the pool, and records
// the stack of its new holder.
func (w *watch) got(b *Buffer) {
	at := -1
	b.pool.lmr.touch(func() {
		at = slices.IndexFunc(b.memory, func(c byte) bool { return c != poison })
	})
	if at >= 0 {
		w.complain(b, fmt.Sprintf("written at byte %d after it was put", at))
	}
	b.state.Store(held)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.traces[b.index].got.record()
}

// put records the stack that puts the buffer, and panics if the buffer is in the
// pool already.
func (w *watch) put(b *Buffer) {
	if b.state.Swap(pooled) == pooled {
		w.complain(b, "put twice")
	}
	w.mu.Lock()
	w.traces[b.index].put.record()
	w.mu.Unlock()
	w.poison(b)
}

func (w *watch) poison(b *Buffer) {
	if w == nil {
		return
	}
	b.pool.lmr.touch(func() {
		for i := range b.memory {
			b.memory[i] = poison
		}
	})
}

// complain panics. With a watch the text holds the stacks that last got and last
// put the buffer.
func (w *watch) complain(b *Buffer, what string) {
	owner := [...]string{pooled: "the pool has it", held: "its holder has it", lent: "an operation has it"}[b.state.Load()]
	if w == nil {
		panic("mem: buffer " + what + " (BufferPoolConfig.Debug names by whom)")
	}
	w.mu.Lock()
	t := w.traces[b.index]
	w.mu.Unlock()
	panic(fmt.Sprintf("mem: buffer %d was %s; %s\nlast got by\n%vlast put by\n%v", b.index, what, owner, &t.got, &t.put))
}

// leaks returns an error that names the holders of buffers that were not put. A
// buffer that an operation still has is no leak.
func (w *watch) leaks(p *BufferPool) error {
	var errs []error
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range p.buffers {
		if p.buffers[i].state.Load() == held {
			errs = append(errs, leakError(fmt.Sprintf("buffer %d was not put; got by\n%v", i, &w.traces[i].got)))
		}
	}
	return errors.Join(errs...)
}
