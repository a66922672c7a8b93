package fault

import (
	"sync"
	"time"
)

// worker is the goroutine of a wrapped device that acts after a delay: it breaks
// connections that lost their peer, and hands on completions that were held.
type worker struct {
	wake chan struct{}
	stop chan struct{}
	done chan struct{}

	mu    sync.Mutex
	tasks []task
}

// task is one action for one life of a queue pair.
type task struct {
	due   time.Time
	qp    *queuePair
	life  int
	sever bool // break the connection; otherwise hand on what was held
}

// start starts the goroutine, run.
func (w *worker) start() {
	w.wake, w.stop, w.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go w.run()
}

// close ends the goroutine and waits for its end.
func (w *worker) close() {
	close(w.stop)
	<-w.done
}

// at schedules a task for the time due.
func (w *worker) at(due time.Time, t task) {
	t.due = due
	w.mu.Lock()
	w.tasks = append(w.tasks, t)
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
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
		case <-w.wake:
		case <-timer.C:
		}
	}
}

// doDue executes the tasks that are due. It returns when the next one is, if there is
// one.
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
