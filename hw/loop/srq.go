package loop

import (
	"godat/hw"
	"godat/hw/internal/soft"
	"godat/internal/yield"
)

// sharedQueue is a shared receive queue. A pipe whose send needs a receive takes
// the first, one at a time; the others stay where they are, whatever becomes of
// the connection.
//
// A pipe that finds none is put in line by the same hold of the lock that found
// none, so whoever posts next sees it. After a post the first in line are called, for
// as many receives as there are: one called has a claim to a receive, and its kick
// comes when the lock is let go. Who was not called takes nothing while others wait,
// so a busy connection can't starve one that came before. A pipe that breaks, or
// has nothing more to send, gives its claim back.
type sharedQueue struct {
	*soft.SRQ

	// Its lock, which is taken while a pipe is held, guards these.
	claims      uint64 // how many receives are for pipes that were called
	first, last *pipe  // the line
}

// place is where a pipe stands with its shared queue.
type place uint8

const (
	outside place = iota
	inLine
	called
)

// NewSRQ makes a shared receive queue.
func (d *device) NewSRQ(cfg hw.SRQConfig) (hw.SRQ, error) {
	q := &sharedQueue{}
	base, err := d.Device.NewSRQ(cfg, q.serve)
	if err != nil {
		return nil, err
	}
	q.SRQ = base
	return q, nil
}

// useSRQ finds the device's queue behind a handle and counts one more queue pair
// that takes from it.
func (d *device) useSRQ(op string, h hw.SRQ, z *soft.Zone) (*sharedQueue, error) {
	if h == nil {
		return nil, nil
	}
	q, ok := h.(*sharedQueue)
	if !ok || q == nil {
		return nil, hw.Errorf("loop."+op, hw.InvalidHandle, hw.HandleSRQ, "not a shared receive queue of this device")
	}
	return q, q.Attach(op, &d.Device, z)
}

func (q *sharedQueue) unuse() {
	if q != nil {
		q.Detach()
	}
}

// serve runs the pipes that wait for what was posted.
func (q *sharedQueue) serve() {
	q.Mu.Lock()
	next := q.call()
	q.Mu.Unlock()
	q.wake(next)
}

// call calls the first in line, if there is a receive for it. Who called it wakes
// it, and looks for the next, when the lock is let go.
func (q *sharedQueue) call() *pipe {
	p := q.first
	if p == nil || q.Left() == q.claims {
		return nil
	}
	q.remove(p)
	p.place = called
	q.claims++
	return p
}

// wake kicks a pipe that was called, and all that can be called behind it. One
// that stands in line between two of these calls is seen by the next.
func (q *sharedQueue) wake(p *pipe) {
	for p != nil {
		yield.Point()
		p.kick()
		q.Mu.Lock()
		p = q.call()
		q.Mu.Unlock()
	}
}

// fetch takes the first receive for a pipe, which is held, or puts it in line.
func (q *sharedQueue) fetch(p *pipe) bool {
	q.Mu.Lock()
	switch {
	case p.place == called:
		p.place = outside
		q.claims--
	case q.first == nil && q.Left() > q.claims:
	default:
		if p.place == outside {
			q.add(p)
		}
		q.Mu.Unlock()
		return false
	}
	low := q.Pop(&p.drawn)
	q.Mu.Unlock()
	if low {
		q.Low()
	}
	return true
}

// leave takes a pipe, which is held, out of the line; its claim is the next one's.
func (q *sharedQueue) leave(p *pipe) {
	q.Mu.Lock()
	switch p.place {
	case outside:
	case inLine:
		q.remove(p)
	case called:
		q.claims--
	}
	p.place = outside
	next := q.call()
	q.Mu.Unlock()
	q.wake(next)
}

func (q *sharedQueue) add(p *pipe) {
	p.place = inLine
	if p.ahead = q.last; p.ahead == nil {
		q.first = p
	} else {
		p.ahead.behind = p
	}
	q.last = p
}

func (q *sharedQueue) remove(p *pipe) {
	if p.ahead == nil {
		q.first = p.behind
	} else {
		p.ahead.behind = p.behind
	}
	if p.behind == nil {
		q.last = p.ahead
	} else {
		p.behind.ahead = p.ahead
	}
	p.ahead, p.behind = nil, nil
}

// The pipe's side of it.

// ready reports whether there is a receive for the send that the pipe is at. One
// from a shared queue is taken then.
func (p *pipe) ready() bool { return p.available() || p.srq != nil && p.fetch() }

func (p *pipe) fetch() bool {
	if !p.hasDrawn {
		p.hasDrawn = p.srq.fetch(p)
		p.lined = !p.hasDrawn
	}
	return p.hasDrawn
}

// leaveLine gives up what fetch has asked for.
func (p *pipe) leaveLine() {
	if p.lined {
		p.lined = false
		p.srq.leave(p)
	}
}
