package target

import (
	"errors"
	"slices"
	"sync"

	"godat/examples/nvmeof/store"
)

// worker does the work of a store that may block, in one goroutine. Its other methods
// may be called from any goroutine.
//
// It works in turns, so that nobody waits long for what others want: in each turn one flush
// for all that wait for one, and then one piece for the next queue that wants blocks zeroed.
// A flush waits for no more than a piece and the flush that is under way.
type worker struct {
	// Immutable.
	store  store.Store
	zeroer Zeroer        // the store, if it is one
	piece  int           // is zeroed in a turn
	wake   chan struct{} // has a value when run has something to look at

	// Owned by run.
	batch []job // those that the turn's flush is for
	err   error // of the store's end; valid when run has returned

	mu      sync.Mutex
	flushes []job  // those that wait for a flush
	lanes   []lane // of the queues that have had something zeroed
	last    int    // the lane that had the last piece
	closed  bool
}

// lane has the jobs of a queue that zero, in the order in which they came.
type lane struct {
	from *queue
	jobs []job
}

// piece is the most that is zeroed in a turn, in bytes, unless the store is a Zeroer.
const piece = 1 << 20

// Zeroer is a Store whose Zero takes about as long for a large range as for a small one: one that notes the range, and
// zeroes it later, for example.
type Zeroer interface {
	store.Store
	// ZeroPiece is the most bytes of one call of ZeroFor.
	ZeroPiece() int
	// ZeroFor is Zero for a command that comes from somewhere.
	ZeroFor(from Origin, off, n int) error
}

// job is work for a store: to zero a range, to flush it, or both.
type job struct {
	from    *queue
	command int32  // which waits for the result
	cid     uint16 // names the command to an Abort
	off, n  int
	zeroed  int // bytes
	zero    bool
	flush   bool
}

// result is a finished job.
type result struct {
	command int32
	err     error
}

// errAborted is the result of a job that an Abort took back.
var errAborted = errors.New("target: the host aborted the command")

func newWorker(s store.Store) *worker {
	w := &worker{store: s, piece: piece, wake: make(chan struct{}, 1)}
	if z, ok := s.(Zeroer); ok {
		w.zeroer, w.piece = z, z.ZeroPiece()
	}
	return w
}

// submit gives the worker a job.
func (w *worker) submit(j job) {
	w.mu.Lock()
	if j.zero {
		l := w.lane(j.from)
		if l == nil {
			w.lanes = append(w.lanes, lane{from: j.from})
			l = &w.lanes[len(w.lanes)-1]
		}
		l.jobs = append(l.jobs, j)
	} else {
		w.flushes = append(w.flushes, j)
	}
	w.mu.Unlock()
	w.kick()
}

// lane is that of a queue, or nil. The caller holds the lock.
func (w *worker) lane(of *queue) *lane {
	for i := range w.lanes {
		if w.lanes[i].from == of {
			return &w.lanes[i]
		}
	}
	return nil
}

// close ends run after the turn. No queue that has jobs is left.
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

// abort takes back the job of a command unless run is at it, and reports whether it
// did. The command's queue gets the result.
func (w *worker) abort(c *controller, queue, cid uint16) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.takeBack(&w.flushes, c, queue, cid) {
		return true
	}
	for i := range w.lanes {
		if w.takeBack(&w.lanes[i].jobs, c, queue, cid) {
			return true
		}
	}
	return false
}

// takeBack is abort for the jobs of a list.
func (w *worker) takeBack(jobs *[]job, c *controller, queue, cid uint16) bool {
	for i, j := range *jobs {
		if j.from.controller == c && j.from.asked.QueueID == queue && j.cid == cid {
			*jobs = slices.Delete(*jobs, i, i+1)
			j.from.results <- result{j.command, errAborted}
			return true
		}
	}
	return false
}

// drop forgets the jobs of a queue that has ended. Nobody waits for their results.
func (w *worker) drop(q *queue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flushes = slices.DeleteFunc(w.flushes, func(j job) bool { return j.from == q })
	w.lanes = slices.DeleteFunc(w.lanes, func(l lane) bool { return l.from == q })
}

// run works until close, and closes the store.
func (w *worker) run() {
	defer w.closeStore()
	for range w.wake {
		for w.turn() {
		}
		if w.isClosed() {
			return
		}
	}
}

func (w *worker) closeStore() { w.err = w.store.Close() }

func (w *worker) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// turn takes a turn. It reports whether there was something to do.
func (w *worker) turn() bool {
	j, zero := w.take()
	if len(w.batch) != 0 {
		w.flush()
	} else if !zero {
		return false
	}
	if zero {
		w.zero(j)
	}
	return true
}

// take takes the jobs of a turn: all that wait for a flush, and one that zeroes.
func (w *worker) take() (j job, zero bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return j, false
	}
	w.batch, w.flushes = w.flushes, w.batch[:0]
	for range w.lanes {
		w.last = (w.last + 1) % len(w.lanes)
		if l := &w.lanes[w.last]; len(l.jobs) != 0 {
			j = l.jobs[0]
			l.jobs = slices.Delete(l.jobs, 0, 1)
			return j, true
		}
	}
	return j, false
}

// flush does one flush that covers the ranges of the batch.
func (w *worker) flush() {
	begin, end := w.batch[0].off, 0
	for _, j := range w.batch {
		begin, end = min(begin, j.off), max(end, j.off+j.n)
	}
	err := w.store.Flush(begin, end-begin)
	for _, j := range w.batch {
		j.from.results <- result{j.command, err}
	}
	clear(w.batch)
	w.batch = w.batch[:0]
}

// zero zeroes the next piece of a job, and puts the job where it goes on.
func (w *worker) zero(j job) {
	n := min(j.n-j.zeroed, w.piece)
	var err error
	if w.zeroer != nil {
		err = w.zeroer.ZeroFor(j.from.origin(), j.off+j.zeroed, n)
	} else {
		err = w.store.Zero(j.off+j.zeroed, n)
	}
	j.zeroed += n
	w.mu.Lock()
	defer w.mu.Unlock()
	switch l := w.lane(j.from); {
	case l == nil: // the queue has ended
	case err == nil && j.zeroed < j.n:
		l.jobs = slices.Insert(l.jobs, 0, j)
	case err == nil && j.flush:
		w.flushes = append(w.flushes, j)
	default:
		j.from.results <- result{j.command, err}
	}
}
