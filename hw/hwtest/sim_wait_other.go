//go:build !linux

package hwtest

import (
	"sync"
	"time"
)

// simWaiter is what a poller sleeps on.
type simWaiter struct {
	mu    sync.Mutex
	cond  sync.Cond
	woken bool
}

func newSimWaiter() (*simWaiter, error) {
	w := &simWaiter{}
	w.cond.L = &w.mu
	return w, nil
}

func (w *simWaiter) completed() { w.wake() }

func (w *simWaiter) wake() {
	w.mu.Lock()
	w.woken = true
	w.mu.Unlock()
	w.cond.Signal()
}

func (w *simWaiter) wait() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.woken {
		w.cond.Wait()
	}
	w.woken = false
	return nil
}

func (w *simWaiter) close() {}

func simPause(d time.Duration) { time.Sleep(d) }
