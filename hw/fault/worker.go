package fault

import (
	"sync"
	"time"
)

// worker acts for a wrapped device after a delay: it breaks connections that lost their
// peer, and hands on completions that were held.
type worker struct {
	mu      sync.Mutex
	pending map[*task]*time.Timer
	tasks   sync.WaitGroup // those in pending, and those that run
}

// task is one action for one life of a queue pair.
type task struct {
	qp    *queuePair
	life  int
	sever bool // break the connection; otherwise hand on what was held
}

// at schedules a task for the time due.
func (w *worker) at(due time.Time, t task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending == nil {
		w.pending = make(map[*task]*time.Timer)
	}
	w.tasks.Add(1)
	w.pending[&t] = time.AfterFunc(time.Until(due), t.run)
}

// run is a timer's goroutine. It waits for at to enter the task.
func (t *task) run() {
	w := &t.qp.dev.worker
	w.mu.Lock()
	delete(w.pending, t)
	w.mu.Unlock()
	defer w.tasks.Done()
	if t.sever {
		t.qp.sever(t.life)
	} else {
		t.qp.settle()
	}
}

// close drops the tasks that are not due, and waits for those that run.
func (w *worker) close() {
	w.mu.Lock()
	for t, timer := range w.pending {
		if timer.Stop() {
			delete(w.pending, t)
			w.tasks.Done()
		}
	}
	w.mu.Unlock()
	w.tasks.Wait()
}
