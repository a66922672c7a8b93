// Package freelist hands out small numbers, such as the places of an array, and
// takes them back. It takes no lock and allocates nothing.
package freelist

import (
	"sync/atomic"

	"godat/internal/release"
	"godat/internal/yield"
)

// List is a set of free numbers. Take and Give may be called from any goroutine.
type List struct {
	// The lower half of head is the first free number plus one, or 0 if there is
	// none. The upper half counts the changes, so that the swap of a goroutine that
	// was held up after its load fails even if the same number is first again, with
	// another one behind it.
	head atomic.Uint64
	next []atomic.Uint32 // the free number behind each free one, plus one
}

// Init makes all numbers below n free. The lowest is taken first. The owner calls
// Init before every other call.
func (l *List) Init(n int) {
	l.next = make([]atomic.Uint32, n)
	for i := range n - 1 {
		l.next[i].Store(uint32(i) + 2)
	}
	if n > 0 {
		l.head.Store(1)
	}
}

// InitEmpty makes l a list for numbers below n, none of which is free.
func (l *List) InitEmpty(n int) { l.next = make([]atomic.Uint32, n) }

// Take takes the number that was given back last; ok is false when none is free.
func (l *List) Take() (n uint32, ok bool) {
	for {
		h := l.head.Load()
		first := uint32(h)
		if first == 0 {
			return 0, false
		}
		yield.Point()
		if l.head.CompareAndSwap(h, (h>>32+1)<<32|uint64(l.next[first-1].Load())) {
			return first - 1, true
		}
	}
}

// Empty reports whether no number is free at the moment.
func (l *List) Empty() bool { return uint32(l.head.Load()) == 0 }

// TakeAll takes up to len(buf) numbers at once, those that were given back last, and
// returns how many it took.
//
// The chain is read without a right to it. Another goroutine may take a number of the
// chain meanwhile and give it back with another one behind it; then head has changed, and
// the swap fails.
func (l *List) TakeAll(buf []uint32) int {
	for {
		h := l.head.Load()
		n, next := 0, uint32(h)
		for ; n < len(buf) && next != 0; n++ {
			buf[n] = next - 1
			next = l.next[next-1].Load()
		}
		yield.Point()
		if n == 0 || l.head.CompareAndSwap(h, (h>>32+1)<<32|uint64(next)) {
			return n
		}
	}
}

// Give makes a number free again that was taken.
func (l *List) Give(n uint32) {
	for {
		h := l.head.Load()
		release.Uint32(&l.next[n], uint32(h)) // the swap below orders it
		yield.Point()
		if l.head.CompareAndSwap(h, (h>>32+1)<<32|uint64(n+1)) {
			return
		}
	}
}
