package loop

import (
	"godat/hw"
	"godat/hw/internal/soft"
)

// maxScratch is the most completions that one end of a pipe gathers.
const maxScratch = 64

// end is a queue pair as one end of a pipe: the part of the table that it reaches, and
// the sink of its completions.
type end struct {
	soft.View
	sink hw.SeriesSink
}

// source is the sending end of a pipe: the send queue as its consumer sees it, and
// the completions of its requests. The pipe's holder owns it.
type source struct {
	// Owned by the holder, but for queue, which is immutable as the end.
	wcs   []hw.WC // completions not handed out yet
	n     int32   // number of completions in wcs
	queue *soft.SendQueue
	head  uint64 // position of the first request

	end
}

// empty reports whether no request is queued.
func (s *source) empty() bool { return s.head == s.queue.Tail.Load() }

// first is the first request of the queue, which is not empty.
func (s *source) first() *hw.SendWR { return &s.queue.Slots[s.head&s.queue.Mask] }

// sent completes a request that moved n bytes.
func (s *source) sent(wr *hw.SendWR, n uint32) {
	if wr.Flags&hw.WRSignaled != 0 {
		s.wcs[s.n] = hw.WC{ID: wr.ID, Len: n, Op: wr.Op}
		s.n++
	}
}

// target is the receiving end of a pipe: the receive queue as its consumer sees it,
// and the completions of its receives. The pipe's holder owns it.
type target struct {
	// Immutable.
	end
	queue *recvQueue

	// Owned by the holder.
	head, tail uint64    // positions in queue; tail as last seen
	freeAt     uint64    // slots are given back when head gets there
	wcs        []hw.WC   // completions not handed out yet
	n          int       // number of completions in wcs
	drawn      hw.RecvWR // a receive taken from srq
	hasDrawn   bool      // drawn holds a receive that is not used yet
	lined      bool      // the target may be in srq's line, or called from it

	// Immutable.
	number uint32       // QPConfig.Number of a queue pair with an srq
	srq    *sharedQueue // unless nil, the receives come from here and not from queue
	pipe   *pipe        // the pipe that the target is an end of

	// Guarded by srq's lock.
	ahead, behind *target // in the line
	place         place
}

// available reports whether the queue pair has a receive of its own.
func (t *target) available() bool {
	if t.head != t.tail {
		return true
	}
	t.tail = t.queue.tail.Load()
	return t.head != t.tail
}

// ready reports whether there is a receive for the first request. With a shared queue
// it takes the receive from it.
func (t *target) ready() bool { return t.available() || t.srq != nil && t.fetch() }

// next is the first receive of the queue pair's own queue, which is not empty.
func (t *target) next() *receive { return &t.queue.slots[t.head&t.queue.mask] }

// first is the memory of the first receive. The target is ready.
func (t *target) first() []hw.SGE {
	if t.hasDrawn {
		return t.drawn.SGL
	}
	return t.next().list()
}

// take takes the first receive, and returns its id.
func (t *target) take() (id uint64) {
	if t.hasDrawn {
		t.hasDrawn = false
		return t.drawn.ID
	}
	id = t.next().id
	t.head++
	return id
}

// received completes the first receive with n bytes.
func (t *target) received(n uint32, op hw.Op, flags hw.WCFlags, imm uint32) {
	t.wcs[t.n] = hw.WC{ID: t.take(), Len: n, Imm: imm, QP: t.number, Op: op, Flags: flags}
	t.n++
}

// fail completes the first receive with an error.
func (t *target) fail(status hw.Status) {
	t.wcs[t.n] = hw.WC{ID: t.take(), QP: t.number, Status: status, Op: hw.OpRecv}
	t.n++
}

// fetch takes a receive from the shared queue, or stands in its line.
func (t *target) fetch() bool {
	if !t.hasDrawn {
		t.hasDrawn = t.srq.fetch(t)
		t.lined = !t.hasDrawn
	}
	return t.hasDrawn
}

// leaveLine withdraws the target from the shared queue's line, if fetch put it there.
func (t *target) leaveLine() {
	if t.lined {
		t.lined = false
		t.srq.leave(t)
	}
}
