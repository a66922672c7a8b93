package stream

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"godat/internal/yield"
	dat "godat/runtime"
)

// waiter is where a Read or a Write waits: one goroutine at a time. Whatever may end the
// wait first changes the state that the waiting call looks at, and then calls notify.
//
// No wake-up is lost: sleep sets waiting and then looks at the state, notify's caller
// changes the state and then looks at waiting. So at least one of the two sees what the
// other did. A token in wake that nobody needed any more costs a later wait one more look.
type waiter struct {
	waiting  atomic.Bool
	wake     chan struct{} // of length 1
	patience int           // looks before a wait; of the goroutine that waits

	passed atomic.Bool // the deadline has passed

	mu    sync.Mutex
	at    time.Time // the deadline; zero for none
	timer *time.Timer
}

// mostPatience is how often a wait lets other goroutines run before it parks, at most.
const mostPatience = 16

// soon reports whether ready reports true after other goroutines have run. On a provider
// that carries bytes within the process that is often so, and saves a wake-up. Its
// patience doubles when it was right, and halves when it was not.
func (w *waiter) soon(ready func() bool) bool {
	for range w.patience {
		runtime.Gosched()
		if ready() {
			w.patience = min(2*w.patience, mostPatience)
			return true
		}
	}
	w.patience = max(1, w.patience/2)
	return false
}

// wait returns when ready reports true, and possibly before. It returns false when gone is
// closed, on which nothing is sent.
func (w *waiter) wait(gone <-chan dat.Event, ready func() bool) bool {
	return w.soon(ready) || w.sleep(gone, ready)
}

// sleep is wait without patience.
func (w *waiter) sleep(gone <-chan dat.Event, ready func() bool) bool {
	w.waiting.Store(true)
	defer w.waiting.Store(false)
	yield.Point()
	if ready() {
		return true
	}
	select {
	case <-w.wake:
		return true
	case <-gone:
		return false
	}
}

// notify wakes the goroutine that waits, if there is one. It does not block.
func (w *waiter) notify() {
	yield.Point()
	if w.waiting.Load() {
		select {
		case w.wake <- struct{}{}:
		default: // a token is there already
		}
	}
}

// setDeadline sets the time at which waits end; zero means never.
func (w *waiter) setDeadline(t time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	w.at = time.Time{}
	left := time.Until(t)
	w.passed.Store(!t.IsZero() && left <= 0)
	if !t.IsZero() && left > 0 {
		w.at = time.Now().Add(left) // by the monotonic clock, which timers use
		if w.timer == nil {
			w.timer = time.AfterFunc(left, w.expire)
		} else {
			w.timer.Reset(left)
		}
	}
	w.notify()
}

// expire is the timer's function. A timer that was stopped too late finds another
// deadline, or none.
func (w *waiter) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.at.IsZero() && !time.Now().Before(w.at) {
		w.passed.Store(true)
		w.notify()
	}
}
