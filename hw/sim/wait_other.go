//go:build !linux

package sim

import "sync"

// waiter puts a poller to sleep until a completion or Wake.
type waiter struct {
	mu    sync.Mutex
	cond  sync.Cond
	woken bool
}

func newWaiter() (*waiter, error) {
	w := &waiter{}
	w.cond.L = &w.mu
	return w, nil
}

func (w *waiter) completed() { w.wake() }

func (w *waiter) wake() {
	w.mu.Lock()
	w.woken = true
	w.mu.Unlock()
	w.cond.Signal()
}

func (w *waiter) wait() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.woken {
		w.cond.Wait()
	}
	w.woken = false
	return nil
}

// sleep is wait, which keeps no thread.
func (w *waiter) sleep() error { return w.wait() }

func (w *waiter) close() {}
