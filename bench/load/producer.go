package load

import (
	"runtime"
	"sync/atomic"
	"time"

	"godat/bench/host"
)

// producer posts its part of a run's messages: the first of three producers those with
// the numbers 0, 3, 6, ….
type producer struct {
	run    *run
	number int64 // among the producers
	window int64 // messages outstanding at most
	first  int64 // the number of the first message, among all that it posted in all runs
	sent   int64
	waits  time.Duration // processor time of its thread, while it waited for intended times
	done   chan struct{} // closed when it has posted all

	// taken is how many of its messages the consumer took. It has a cache line of its own,
	// because the consumer writes it.
	_     [64]byte
	taken atomic.Int64
	_     [56]byte
}

func newProducer(r *run, number int) *producer {
	return &producer{
		run: r, number: int64(number), window: int64(r.Depth / len(r.posted)), first: r.posted[number],
		done: make(chan struct{}),
	}
}

// post sends the next message, which was to be posted at due. If that fails it refuses
// the run, unless the run has failed already, and returns false.
func (p *producer) post(due time.Duration) (ok bool) {
	r := p.run
	slot := int(p.number)*r.slots + int((p.first+p.sent)%int64(r.slots))
	r.due[slot].Store(int64(due))
	p.sent++
	err := r.lane.Post(slot)
	if err != nil && !r.failed.Load() {
		r.refuse(err)
	}
	return err == nil
}

// offer posts messages until the run's end.
func (p *producer) offer() {
	defer close(p.done)
	for final := false; !final && !p.run.failed.Load(); {
		var due time.Duration
		due, final = p.next()
		if final {
			p.run.total.Add(p.sent + 1)
			p.run.posting.Add(-1)
		}
		if !p.post(due) {
			_ = p.run.close() // ends the consumer's wait; Driver.Close returns the error again
			return
		}
		if p.run.Rate.Open() {
			// A program that posts one message after the other would wait for its next
			// reason to post, and so let its processor go.
			runtime.Gosched()
		}
	}
}

// next waits until a message may be posted, and returns when that was to be. final says
// that no message follows.
func (p *producer) next() (due time.Duration, final bool) {
	r := p.run
	if r.Rate.Open() {
		due = p.intended(p.sent)
		final = p.intended(p.sent+1) >= r.end
		p.wait(due)
	}
	for p.sent-p.taken.Load() >= p.window && !r.failed.Load() {
		r.yield()
	}
	now := time.Since(r.base)
	if !r.Rate.Open() {
		return now, now > r.end
	}
	// An overloaded lane would be offered the rest for long after the end.
	return due, final || now > r.end+r.Duration
}

// wait waits until a message is to be posted. It keeps its thread meanwhile, whose clock
// tells what the wait takes, and is read so early that the post is not late by the reading.
func (p *producer) wait(due time.Duration) {
	r := p.run
	if early := due - threadClockCost(); r.timed && time.Since(r.base) < early {
		runtime.LockOSThread()
		began, _ := host.ThreadTime()
		r.pace(r.base, early)
		now, _ := host.ThreadTime()
		runtime.UnlockOSThread()
		p.waits += now - began
	}
	r.pace(r.base, due)
}

// intended is when the producer's message with number n is to be posted.
func (p *producer) intended(n int64) time.Duration {
	return p.run.start + p.run.Rate.intended(n*int64(len(p.run.producers))+p.number)
}
