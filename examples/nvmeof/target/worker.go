package target

import "godat/examples/nvmeof/store"

// worker does the work of a store that may block, in one goroutine.
type worker struct {
	store store.Store
	jobs  chan job // has room for a job of each command that may be outstanding
	batch []job    // run's
}

// job is work for a store: to zero a range, to flush it, or both.
type job struct {
	from    *queue
	command int32 // which waits for the result
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

func newWorker(s store.Store, jobs int) *worker {
	return &worker{store: s, jobs: make(chan job, jobs)}
}

// run works until jobs is closed. It takes all jobs at hand at once.
func (w *worker) run() {
	for j := range w.jobs {
		w.batch = append(w.batch[:0], j)
		for range len(w.jobs) {
			w.batch = append(w.batch, <-w.jobs)
		}
		w.work()
		clear(w.batch)
	}
}

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
