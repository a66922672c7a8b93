// Package workers has goroutines that do in turns what other goroutines leave to them.
package workers

import (
	"runtime"
	"sync"

	"godat/internal/labels"
)

// Pool is up to a worker for each processor, and a list of what waits for one. A worker
// begins when something waits and no worker is free. What waits stands in the list once,
// and holds the link to what waits behind it, so Add allocates nothing. A worker takes
// nothing off the list while another goroutine holds the pool's lock, which is a leaf.
type Pool[T any] struct {
	// Immutable after Start.
	serve func(*T)
	link  func(*T) **T

	wg sync.WaitGroup

	sync.Mutex
	work        sync.Cond
	first, last *T
	stopped     bool
	begun       int // workers
	free        int // of them, those that sleep and that no Add has woken; unused once stopped
}

// Start sets what the workers do. serve gives one its turn; what has not done everything by then
// goes to the end of the list by Add, if others wait. link returns where the pool keeps what
// waits behind one, which the pool's lock guards.
func (p *Pool[T]) Start(serve func(*T), link func(*T) **T) {
	p.serve, p.link = serve, link
	p.work.L = p
}

// Stop ends the workers once the list is empty, and waits for that. Nobody but they adds anything any
// more.
func (p *Pool[T]) Stop() {
	p.Lock()
	p.stopped = true
	p.Unlock()
	p.work.Broadcast()
	p.wg.Wait()
}

// Add puts t at the end of the list.
func (p *Pool[T]) Add(t *T) {
	p.Lock()
	if p.last == nil {
		p.first = t
	} else {
		*p.link(p.last) = t
	}
	p.last = t
	switch {
	case p.free > 0:
		p.free--
		p.work.Signal()
	case p.begun < runtime.GOMAXPROCS(0):
		p.begun++
		p.wg.Add(1)
		go p.run()
	}
	p.Unlock()
}

// Idle reports whether nothing waits.
func (p *Pool[T]) Idle() bool {
	p.Lock()
	defer p.Unlock()
	return p.first == nil
}

var workerLabel = labels.Of("a worker of posters")

// run is a worker's goroutine.
func (p *Pool[T]) run() {
	workerLabel.Set()
	defer p.wg.Done()
	for t := p.take(); t != nil; t = p.take() {
		p.serve(t)
	}
}

// take waits for the first of the list, and takes it off. It returns nil when the workers
// are stopped.
func (p *Pool[T]) take() *T {
	p.Lock()
	defer p.Unlock()
	for p.first == nil {
		if p.stopped {
			return nil
		}
		p.free++
		p.work.Wait()
	}
	t := p.first
	next := p.link(t)
	if p.first, *next = *next, nil; p.first == nil {
		p.last = nil
	}
	return t
}
