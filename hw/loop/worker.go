package loop

import (
	"godat/internal/workers"
	"godat/internal/yield"
)

// Workers do what is too long for a poster: long messages, and long queues of sends that
// a single receive set free. A pipe waits for a worker in a list, with its token held
// and parked. A pipe that has had its turn goes to the end of the list if others wait.

func startWorkers() *workers.Pool[pipe] {
	s := new(workers.Pool[pipe])
	s.Start((*pipe).resume, func(p *pipe) **pipe { return &p.nextQueued })
	return s
}

// handOver leaves the pipe, which the caller holds, to a worker.
func (p *pipe) handOver() {
	p.exec.byWorker = false
	p.token.Leave()
	yield.Point()
	p.from.qp.dev.workers.Add(p)
}

// resume is a worker's turn: it runs the pipe until nothing is left to do, or the turn is
// over and others wait.
func (p *pipe) resume() {
	p.token.Resume()
	p.exec.byWorker = true
	for {
		p.ops, p.exec.bytes = maxOps, maxChunk
		more := p.drain()
		switch {
		case more && !p.from.qp.dev.workers.Idle():
			p.handOver()
			return
		case more:
			p.token.Step()
		default:
			p.exec.byWorker = false
			if p.token.Release() {
				return
			}
			p.exec.byWorker = true // there was a kick
		}
	}
}
