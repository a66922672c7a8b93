package target

import (
	"errors"
	"slices"
	"sync"

	"godat/examples/nvmeof/store"
)

// worker does the work of a store that may block, in one goroutine. Its other methods
// may be called from any goroutine.
type worker struct {
	// Immutable.
	store store.Store
	wake  chan struct{} // has a value when run has something to look at

	// Owned by run.
	batch []job
	err   error // of the store's end; valid when run has returned

	mu      sync.Mutex
	pending []job // those that run has not taken
	closed  bool
}

// job is work for a store: to zero a range, to flush it, or both.
type job struct {
	from    *queue
	command int32  // which waits for the result
	cid     uint16 // names the command to an Abort
	off, n  int
	zero    bool
	flush   bool
	err     error
}

// result is a finished job.
type result struct {
	command int32
	err     error
}

// errAborted is the result of a job that an Abort took back.
var errAborted = errors.New("target: the host aborted the command")

func newWorker(s store.Store) *worker { return &worker{store: s, wake: make(chan struct{}, 1)} }

// submit gives the worker a job.
func (w *worker) submit(j job) {
	w.mu.Lock()
	w.pending = append(w.pending, j)
	w.mu.Unlock()
	w.kick()
}

// close ends run when all jobs are done.
func (w *worker) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.kick()
}

func (w *worker) kick() {
	select {
	case w.wake <- struct{}{}:
	default: // run is going to look anyway
	}
}

// abort takes back the job of a command unless run has taken it, and reports whether it
// did. The command's queue gets the result.
func (w *worker) abort(c *controller, queue, cid uint16) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, j := range w.pending {
		if j.from.controller == c && j.from.asked.QueueID == queue && j.cid == cid {
			w.pending = slices.Delete(w.pending, i, i+1)
			j.from.results <- result{j.command, errAborted}
			return true
		}
	}
	return false
}

// run works until close, and closes the store. It takes all jobs at hand at once.
func (w *worker) run() {
	defer w.closeStore()
	for range w.wake {
		w.mu.Lock()
		w.batch, w.pending = w.pending, w.batch[:0]
		closed := w.closed
		w.mu.Unlock()
		w.work()
		clear(w.batch)
		if closed {
			return
		}
	}
}

func (w *worker) closeStore() { w.err = w.store.Close() }

// work does the jobs of the batch: first all that zero, then one flush that covers the
// ranges of all. A flush may come later than the zeroing of a job that was queued behind
// it, since nobody relies on blocks staying volatile.
func (w *worker) work() {
	begin, end := -1, 0
	for i := range w.batch {
		j := &w.batch[i]
		if j.zero {
			j.err = w.store.Zero(j.off, j.n)
		}
		if j.flush && (begin < 0 || j.off < begin) {
			begin = j.off
		}
		if j.flush {
			end = max(end, j.off+j.n)
		}
	}
	var err error
	if begin >= 0 {
		err = w.store.Flush(begin, end-begin)
	}
	for _, j := range w.batch {
		if j.flush && j.err == nil {
			j.err = err
		}
		j.from.results <- result{j.command, j.err}
	}
}
