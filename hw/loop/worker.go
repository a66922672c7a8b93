package loop

import (
	"runtime"
	"sync"

	"godat/internal/yield"
)

// workers finish what is more than a poster should do: long messages, and long
// queues that somebody else's post set free. A pipe waits for one in a list, held
// but marked as queued, and comes back to the end of it when it had its turn and
// others wait.
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

// stop ends the workers. The list is empty for good.
func (s *workers) stop() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.work.Broadcast()
	s.wg.Wait()
}

// handOver leaves the pipe, which is held, to a worker.
func (p *pipe) handOver() {
	p.exec.byWorker = false
	p.giveToWorker()
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

// serve is a worker.
func (s *workers) serve() {
	defer s.wg.Done()
	for p := s.take(); p != nil; p = s.take() {
		p.takeUp()
		p.exec.byWorker = true
		s.finish(p)
	}
}

// finish runs a pipe until it has nothing more to do, or others wait.
func (s *workers) finish(p *pipe) {
	for {
		p.ops, p.exec.bytes = maxOps, maxChunk
		more := p.drain()
		switch {
		case more && !s.idle():
			p.handOver()
			return
		case more:
			p.step()
		case p.letGo():
			return
		}
	}
}

// letGo ends a worker's hold, unless there is a kick.
func (p *pipe) letGo() bool {
	p.exec.byWorker = false
	if p.release() {
		return true
	}
	p.exec.byWorker = true
	return false
}
