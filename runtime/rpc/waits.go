package rpc

import (
	"sync"
	"time"
)

// waits are the callers that wait for a place for their call, the one who came first at the head. Any
// goroutine may call its methods. Only a caller that has to wait does.
type waits struct {
	mu          sync.Mutex
	first, last *waiter
	n           int
	spare       *waiter // by next
}

// waiter is a caller that waits.
type waiter struct {
	since      time.Time
	prev, next *waiter
}

func (w *waits) begin() *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.spare
	if one == nil {
		one = new(waiter)
	} else {
		w.spare = one.next
	}
	*one = waiter{since: time.Now(), prev: w.last}
	if w.last == nil {
		w.first = one
	} else {
		w.last.next = one
	}
	w.last = one
	w.n++
	return one
}

// end takes a caller out, and says how long it has waited.
func (w *waits) end(one *waiter) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one.prev == nil {
		w.first = one.next
	} else {
		one.prev.next = one.next
	}
	if one.next == nil {
		w.last = one.prev
	} else {
		one.next.prev = one.prev
	}
	w.n--
	d := time.Since(one.since)
	one.next, w.spare = w.spare, one
	return d
}

// snapshot says how many wait, and how long the first of them has.
func (w *waits) snapshot() (n int, age time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.first == nil {
		return 0, 0
	}
	return w.n, time.Since(w.first.since)
}
