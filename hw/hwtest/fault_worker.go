package hwtest

import (
	"sync"
	"time"
)

// faultWorker does what is due later on a wrapped device: to break what has lost
// its peer, and to hand on what was held.
type faultWorker struct {
	kick chan struct{}
	stop chan struct{}
	done chan struct{}

	mu    sync.Mutex
	tasks []faultTask
}

// faultTask is one thing due, in one life of a queue pair.
type faultTask struct {
	due   time.Time
	qp    *faultQP
	life  int
	sever bool // else: hand on
}

// start starts the goroutine.
func (w *faultWorker) start() {
	w.kick, w.stop, w.done = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go w.run()
}

// close ends it.
func (w *faultWorker) close() {
	close(w.stop)
	<-w.done
}

// at plans a task.
func (w *faultWorker) at(due time.Time, t faultTask) {
	t.due = due
	w.mu.Lock()
	w.tasks = append(w.tasks, t)
	w.mu.Unlock()
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

func (w *faultWorker) run() {
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
func (w *faultWorker) doDue() (next time.Time, more bool) {
	now := time.Now()
	w.mu.Lock()
	var due []faultTask
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
