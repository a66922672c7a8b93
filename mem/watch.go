package mem

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"godat/hw"
	"godat/internal/memory"
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

// poisoned is what fills the memory of a buffer while it is in the pool, once it was put;
// untouched is what does before.
var (
	poisoned  = [4096]byte(bytes.Repeat([]byte{0xdb}, 4096))
	untouched [len(poisoned)]byte
)

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
	w.mu.Lock()
	wasPut := w.traces[b.index].put.n != 0
	w.mu.Unlock()
	if at := differs(b.memory(), wasPut); at >= 0 {
		w.complain(b, fmt.Sprintf("written at byte %d after it was put", at))
	}
	w.took(b)
}

// took records the stack of a holder that takes the buffer from an operation.
func (w *watch) took(b *Buffer) {
	if w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.traces[b.index].got.record()
	}
}

// put records the stack that puts the buffer, and poisons the memory.
func (w *watch) put(b *Buffer) {
	w.mu.Lock()
	w.traces[b.index].put.record()
	w.mu.Unlock()
	for left := b.memory(); len(left) > 0; {
		left = left[copy(left, poisoned[:]):]
	}
}

// differs returns the first byte that is not as the pool left it, or -1. Memory that was
// never put is zero, so that a new pool need not touch it.
func differs(b []byte, wasPut bool) int {
	want := &untouched
	if wasPut {
		want = &poisoned
	}
	for at := 0; at < len(b); at += len(want) {
		piece := b[at:min(at+len(want), len(b))]
		if !bytes.Equal(piece, want[:len(piece)]) {
			return at + slices.IndexFunc(piece, func(c byte) bool { return c != want[0] })
		}
	}
	return -1
}

// complain panics. With a watch the text holds the stacks that last got and last
// put the buffer.
func (w *watch) complain(b *Buffer, what string) {
	owner := [...]string{memory.Pool: "the pool has it, by Put or Release", memory.Holder: "its holder has it", memory.Operation: "an operation has it", memory.Lent: "an operation has it"}[b.owner.Owner()]
	if w == nil {
		panic(fmt.Sprintf("mem: buffer %d was %s; %s (with Debug in the ConnConfig or BufferPoolConfig, this names the callers)", b.index, what, owner))
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
		if p.buffers[i].owner.Owner() == memory.Holder {
			errs = append(errs, hw.Errorf("mem.BufferPool.Close", hw.InvalidState, hw.StateLMRInUse, "buffer %d was not put; got by\n%v", i, &w.traces[i].got))
		}
	}
	return errors.Join(errs...)
}
