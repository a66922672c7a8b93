package fault

import (
	"sync"
	"time"
)

// worker does what is due later on a wrapped device: to break what has lost
// its peer, and to hand on what was held.
type worker struct {
	kick chan struct{}
	stop chan struct{}
	done chan struct{}

	mu    sync.Mutex
	tasks []task
}

// task is one thing due, in one life of a queue pair.
type task struct {
	due   time.Time
	qp    *queuePair
	life  int
	sever bool // else: hand on
}

// start starts the goroutine.
func (w *worker) start() {
	w.kick, w.stop, w.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go w.run()
}

// close ends it.
func (w *worker) close() {
	close(w.stop)
	<-w.done
}

// at plans a task.
func (w *worker) at(due time.Time, t task) {
	t.due = due
	w.mu.Lock()
	w.tasks = append(w.tasks, t)
	w.mu.Unlock()
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

func (w *worker) run() {
	defer close(w.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next, ok := w.doDue()
		if ok {
			timer.Reset(time.Until(next))
		}
		select {
		case <-w.stop:
			return
		case <-w.kick:
		case <-timer.C:
		}
	}
}

// doDue does what is due and says when the next is.
func (w *worker) doDue() (next time.Time, more bool) {
	now := time.Now()
	w.mu.Lock()
	var due []task
	rest := w.tasks[:0]
	for _, t := range w.tasks {
		if !t.due.After(now) {
			due = append(due, t)
			continue
		}
		rest = append(rest, t)
		if !more || t.due.Before(next) {
			next, more = t.due, true
		}
	}
	w.tasks = rest
	w.mu.Unlock()
	for _, t := range due {
		if t.sever {
			t.qp.sever(t.life)
		} else {
			t.qp.settle()
		}
	}
	return next, more
}
