package loop

import (
	"godat/hw"
	"godat/hw/internal/soft"
	"godat/internal/yield"
)

// sharedQueue is a shared receive queue. A pipe's target takes the first receive when
// its send needs one. The other receives stay in the queue, whatever becomes of the
// connection.
//
// A target that finds no receive stands in line. It enters the line under the same hold
// of the lock that found none, so the next poster sees it. A post calls as many targets
// from the front of the line as there are receives. A called target has a claim to a
// receive, and its caller kicks its pipe after it has released the lock. A target that
// was not called takes nothing while others wait, so a busy connection can't starve one
// that came before. A pipe that breaks, or has nothing more to send, gives its claim
// back.
type sharedQueue struct {
	soft.SRQ

	// The SRQ's lock, which a pipe's holder takes, guards these.
	claims      uint64  // number of receives that belong to targets that were called
	first, last *target // the line
}

// place is a target's place with its shared queue.
type place uint8

const (
	outside place = iota
	inLine
	called
)

// NewSRQ makes a shared receive queue.
func (d *device) NewSRQ(cfg hw.SRQConfig) (hw.SRQ, error) {
	q := &sharedQueue{}
	return q, q.Open(&d.Device, cfg, q.serve)
}

// serve runs the pipes that wait for the receives that were posted.
func (q *sharedQueue) serve() {
	q.Mu.Lock()
	next := q.call()
	q.Mu.Unlock()
	q.kickCalled(next)
}

// call calls the first target in line, if there is a receive for it. The lock is held;
// after its release the caller of call passes the target to kickCalled.
func (q *sharedQueue) call() *target {
	t := q.first
	if t == nil || q.Left() == q.claims {
		return nil
	}
	q.remove(t)
	t.place = called
	q.claims++
	return t
}

// kickCalled kicks the pipe of a target that was called, then calls and kicks the
// targets behind it for which there are receives. The next call sees a target that has
// entered the line meanwhile.
func (q *sharedQueue) kickCalled(t *target) {
	for t != nil {
		yield.Point()
		t.pipe.kick()
		q.Mu.Lock()
		t = q.call()
		q.Mu.Unlock()
	}
}

// fetch takes the first receive for a target, or puts the target in line. The caller
// holds the pipe.
func (q *sharedQueue) fetch(t *target) bool {
	q.Mu.Lock()
	switch {
	case t.place == called:
		t.place = outside
		q.claims--
	case q.first == nil && q.Left() > q.claims:
	default:
		if t.place == outside {
			q.add(t)
		}
		q.Mu.Unlock()
		return false
	}
	low := q.Pop(&t.drawn)
	q.Mu.Unlock()
	if low {
		q.Low()
	}
	return true
}

// leave takes a target out of the line, and gives its claim to the next. The caller
// holds the pipe.
func (q *sharedQueue) leave(t *target) {
	q.Mu.Lock()
	switch t.place {
	case outside:
	case inLine:
		q.remove(t)
	case called:
		q.claims--
	}
	t.place = outside
	next := q.call()
	q.Mu.Unlock()
	q.kickCalled(next)
}

func (q *sharedQueue) add(t *target) {
	t.place = inLine
	if t.ahead = q.last; t.ahead == nil {
		q.first = t
	} else {
		t.ahead.behind = t
	}
	q.last = t
}

func (q *sharedQueue) remove(t *target) {
	if t.ahead == nil {
		q.first = t.behind
	} else {
		t.ahead.behind = t.behind
	}
	if t.behind == nil {
		q.last = t.ahead
	} else {
		t.behind.ahead = t.ahead
	}
	t.ahead, t.behind = nil, nil
}
