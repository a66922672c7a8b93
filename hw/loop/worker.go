package loop

import (
	"runtime"
	"sync"

	"godat/internal/yield"
)

// workers do what is too long for a poster: long messages, and long queues of sends that
// a single receive set free. A pipe waits for a worker in a list, with its token held
// and parked. A pipe that has had its turn goes to the end of the list if others wait.
type workers struct {
	wg sync.WaitGroup

	mu          sync.Mutex
	work        sync.Cond
	first, last *pipe
	stopped     bool
}

func startWorkers() *workers {
	s := &workers{}
	s.work.L = &s.mu
	for range runtime.GOMAXPROCS(0) {
		s.wg.Add(1)
		go s.serve()
	}
	return s
}

// stop ends the workers. The list is empty and stays so.
func (s *workers) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.work.Broadcast()
	s.wg.Wait()
}

// handOver leaves the pipe, which the caller holds, to a worker.
func (p *pipe) handOver() {
	p.exec.byWorker = false
	p.token.Leave()
	yield.Point()
	s := p.from.qp.dev.workers
	s.mu.Lock()
	if s.last == nil {
		s.first = p
	} else {
		s.last.nextQueued = p
	}
	s.last = p
	s.mu.Unlock()
	s.work.Signal()
}

func (s *workers) take() *pipe {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.first == nil {
		if s.stopped {
			return nil
		}
		s.work.Wait()
	}
	p := s.first
	if s.first, p.nextQueued = p.nextQueued, nil; s.first == nil {
		s.last = nil
	}
	return p
}

func (s *workers) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first == nil
}

// serve is a worker's goroutine.
func (s *workers) serve() {
	defer s.wg.Done()
	for p := s.take(); p != nil; p = s.take() {
		p.token.Resume()
		p.exec.byWorker = true
		s.finish(p)
	}
}

// finish runs a pipe until nothing is left to do, or its turn is over and others wait.
func (s *workers) finish(p *pipe) {
	for {
		p.ops, p.exec.bytes = maxOps, maxChunk
		more := p.drain()
		switch {
		case more && !s.idle():
			p.handOver()
			return
		case more:
			p.token.Step()
		case p.letGo():
			return
		}
	}
}

// letGo ends a worker's hold and returns true, unless there is a kick.
func (p *pipe) letGo() bool {
	p.exec.byWorker = false
	if p.token.Release() {
		return true
	}
	p.exec.byWorker = true
	return false
}
