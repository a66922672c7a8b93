package ep

import (
	"runtime"
	"sync"
)

// workers run the steps that posters leave: a poster that has executed a budget's
// worth of posts hands the token over to them, so that no poster works for others
// without end. They belong to the adapter, since an endpoint has nothing for them
// most of the time. A mailbox waits for a worker in a list, with its token held. One
// that has had its turn goes to the end of the list if others wait.
type workers struct {
	wg sync.WaitGroup

	mu          sync.Mutex // a leaf
	work        sync.Cond
	first, last *mailbox
	stopped     bool
}

func (w *workers) start() {
	w.work.L = &w.mu
	for range runtime.GOMAXPROCS(0) {
		w.wg.Add(1)
		go w.serve()
	}
}

// stop ends the workers once the list is empty. No token is handed over any more,
// because all endpoints are closed. A second call does nothing.
func (w *workers) stop() {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.work.Broadcast()
	w.wg.Wait()
}

// serve is a worker's goroutine.
func (w *workers) serve() {
	defer w.wg.Done()
	for b := w.take(); b != nil; b = w.take() {
		b.token.Resume()
		b.run(true)
	}
}

// add puts a mailbox, whose token is held by nobody else, at the end of the list.
func (w *workers) add(b *mailbox) {
	w.mu.Lock()
	if w.last == nil {
		w.first = b
	} else {
		w.last.nextInList = b
	}
	w.last = b
	w.mu.Unlock()
	w.work.Signal()
}

// take waits for the first of the list, and takes it off. It returns nil when the
// workers are stopped.
func (w *workers) take() *mailbox {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.first == nil {
		if w.stopped {
			return nil
		}
		w.work.Wait()
	}
	b := w.first
	if w.first, b.nextInList = b.nextInList, nil; w.first == nil {
		w.last = nil
	}
	return b
}

// idle reports whether no mailbox waits.
func (w *workers) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first == nil
}
