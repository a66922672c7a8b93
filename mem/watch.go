package mem

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// watch is the debugging side of a pool. A nil watch watches nothing.
type watch struct {
	mu     sync.Mutex
	traces []traces // by buffer, under mu
}

// traces say who had a buffer.
type traces struct{ got, put trace }

// trace is a stack, as far as it fits.
type trace struct {
	pcs [12]uintptr
	n   int
}

// poison is what the memory of a buffer is filled with while the pool has it.
const poison = 0xdb

func newWatch(n int) *watch { return &watch{traces: make([]traces, n)} }

// record takes the stack of whoever called the pool.
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

// got looks whether anybody wrote to the buffer while the pool had it, and notes
// who gets it.
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

// put notes who puts the buffer, if anybody has it.
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

// complain panics. With a watch the text has the stack of the buffer's last owner.
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

// leaks names the holders of the buffers that were not put. What an operation has is
// nobody's fault.
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
