package loop

import (
	"godat/hw"
	"godat/hw/internal/soft"
)

// maxScratch is how many completions one end of a pipe gathers at most.
const maxScratch = 64

// end is a queue pair as one end of a pipe: what its keys reach, and where its
// completions go.
type end struct {
	soft.View
	sink hw.Sink
}

// allows reports whether all segments can be reached. Empty ones always can.
func (e *end) allows(sgl []hw.SGE, need hw.Privileges) bool {
	for i := range sgl {
		s := &sgl[i]
		if s.Len != 0 && e.Reach(s.Addr, s.Len, s.LKey, need) == nil {
			return false
		}
	}
	return true
}

// source is the sending end of a pipe: the send queue as its consumer sees it, and
// the completions of its requests. The pipe's holder owns it.
type source struct {
	// Immutable.
	end
	queue *soft.SendQueue

	// Owned by the holder.
	head  uint64  // position of the first request
	freed uint64  // slots given back, as last published
	wcs   []hw.WC // completions not handed out yet
	n     int     // in use of wcs
}

// empty reports whether no request is queued.
func (s *source) empty() bool { return s.head == s.queue.Tail.Load() }

// first is the first request of the queue. There is one.
func (s *source) first() *hw.SendWR { return &s.queue.Slots[s.head&s.queue.Mask] }

// sent completes a request that moved n bytes.
func (s *source) sent(wr *hw.SendWR, n uint32) {
	if wr.Flags&hw.WRSignaled != 0 {
		s.wcs[s.n] = hw.WC{ID: wr.ID, Len: n, Op: wr.Op}
		s.n++
	}
}

// fail completes a request with an error.
func (s *source) fail(wr *hw.SendWR, status hw.Status) {
	s.wcs[s.n] = hw.WC{ID: wr.ID, Status: status, Op: wr.Op}
	s.n++
}

// target is the receiving end of a pipe: the receive queue as its consumer sees it,
// and the completions of its receives. The pipe's holder owns it.
type target struct {
	// Immutable.
	end
	queue  *recvQueue
	srq    *sharedQueue // has the receives instead of queue, unless nil
	number uint32       // the queue pair's, which takes from srq
	pipe   *pipe        // that the target is an end of

	// Owned by the holder.
	head, tail uint64    // of the queue; tail as last seen
	freeAt     uint64    // slots are given back when the head gets there
	wcs        []hw.WC   // completions not handed out yet
	n          int       // in use of wcs
	drawn      hw.RecvWR // a receive taken from srq
	hasDrawn   bool      // drawn is there
	lined      bool      // the target may be in srq's line, or called

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

// ready reports whether there is a receive for the first request. One of a shared
// queue is taken from it then.
func (t *target) ready() bool { return t.available() || t.srq != nil && t.fetch() }

// next is the first receive of the queue pair's own. There is one.
func (t *target) next() *hw.RecvWR { return &t.queue.slots[t.head&t.queue.mask] }

// first is the first receive. The target is ready.
func (t *target) first() *hw.RecvWR {
	if t.hasDrawn {
		return &t.drawn
	}
	return t.next()
}

// take takes the first receive. What it returns is good until completions are
// handed out.
func (t *target) take() *hw.RecvWR {
	if t.hasDrawn {
		t.hasDrawn = false
		return &t.drawn
	}
	rr := t.next()
	t.head++
	return rr
}

// received completes the first receive with n bytes.
func (t *target) received(n uint32, op hw.Op, flags hw.WCFlags, imm uint32) {
	rr := t.take()
	t.wcs[t.n] = hw.WC{ID: rr.ID, Len: n, Imm: imm, QP: t.number, Op: op, Flags: flags}
	t.n++
}

// fail completes the first receive with an error.
func (t *target) fail(status hw.Status) {
	rr := t.take()
	t.wcs[t.n] = hw.WC{ID: rr.ID, QP: t.number, Status: status, Op: hw.OpRecv}
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

// leaveLine gives up what fetch has asked for.
func (t *target) leaveLine() {
	if t.lined {
		t.lined = false
		t.srq.leave(t)
	}
}
