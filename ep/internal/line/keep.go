package line

import (
	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
	"godat/internal/release"
	"godat/internal/ring"
	"godat/internal/yield"
)

// The completions of a run. The provider says that more follow (hw.WCMore), so the
// completer keeps a completion in its slot. It delivers those kept together, by one claim
// of cells, one store of retired and one flush of the dispatcher's queue, when the provider
// ends the series, and before that when the run has moved so much that a consumer on another
// processor had better begin.
//
// Between two calls of the provider's the completer owes consumers what is kept, and nothing else. While something is
// kept, retired is behind the next completion's slot; so the test of CompleteOne fails, and completeArray delivers first.

// maxKept is how many bytes the operations move whose completions are kept.
const maxKept = 64 << 10

// keep keeps a completion, as CompleteOne gets it, if it is for the short way.
//
// The slot is the completer's until retired moves past it. The provider has done with the
// segment, so the completion's length takes the place of the segment's.
func (q *Queue) keep(id uint64, op hw.Op, n uint32) {
	s := &q.slots[uint32(id)&q.mask]
	to := s.to
	if s.odd(op)|(uint32(id)^(q.retired.Load()+q.kept))&q.mask|q.watched.Load() != 0 || to == nil {
		q.completeOdd(id, op, n, 0)
		return
	}
	q.completer.Acquire()
	if q.keptFor != to {
		q.deliver()
		q.keptFor = to
	}
	s.sge[0].Len = n
	if op != q.plain {
		q.keepOther(op, n)
	}
	q.kept++
	if q.keptBytes += n; q.keptBytes >= maxKept {
		q.deliver()
	}
	q.completer.Release()
}

// keepOther counts an operation that is kept and is not what the queue has most.
//
//go:noinline
func (q *Queue) keepOther(op hw.Op, n uint32) {
	q.box.cold.countOther(op, n)
	q.keptOther++
	q.tally().keptOctets += n
}

// Flush ends a series of completions from the provider. Of one that has kept nothing it does nothing: before
// ESTABLISHED is announced nothing is kept, and the completer may be whoever announces it, at this moment.
func (q *Queue) Flush() {
	if q.keptFor == nil {
		return
	}
	q.completer.Acquire()
	q.deliver()
	q.completer.Release()
}

// deliver is stages 6 and 7 of several: it delivers the completions kept, if there are some, and flushes the dispatcher's
// queue that they go to.
func (q *Queue) deliver() {
	q.completer.Check()
	to := q.keptFor
	if to == nil {
		return
	}
	n := int(q.kept)
	if q.keptOther != 0 {
		q.keptBytes -= q.tally().takeKept()
	}
	q.moved.add(uint64(n)-uint64(q.keptOther), uint64(q.keptBytes))
	q.kept, q.keptBytes, q.keptOther, q.keptFor = 0, 0, 0, nil
	if ring := to.Ring(); ring != nil {
		q.deliverCells(to, ring, n)
	} else {
		q.deliverEvents(to, n)
	}
	to.Flush()
}

// deliverCells is deliver of n completions into cells of a ring. As in CompleteOne, retired
// moves after the slots were read, and before a consumer can see an event.
func (q *Queue) deliverCells(to *delivery.Queue, ring *ring.Reserved[event.Event], n int) {
	r, first, source := q.retired.Load(), ring.ClaimAll(n), q.box.source
	for done := 0; done < n; {
		slots := q.slots[(r+uint32(done))&q.mask:]
		cells := ring.Stretch(first+uint64(done), min(n-done, len(slots)))
		for i := range cells {
			s := &slots[i]
			delivery.Success(&cells[i].Value, source, s.cookie.Load(), s.op, s.sge[0].Len)
		}
		done += len(cells)
	}
	release.Uint32(&q.retired, (r+uint32(n))&ticketMask)
	ring.At(first).PublishAll(first, n)
	to.Note()
}

// deliverEvents is deliver to a queue without a ring.
func (q *Queue) deliverEvents(to *delivery.Queue, n int) {
	var evs [16]event.Event
	for r := q.retired.Load(); n > 0; {
		slots := q.slots[r&q.mask:]
		some := evs[:min(n, len(slots), len(evs))]
		for i := range some {
			s := &slots[i]
			delivery.Success(&some[i], q.box.source, s.cookie.Load(), s.op, s.sge[0].Len)
		}
		r = (r + uint32(len(some))) & ticketMask
		release.Uint32(&q.retired, r)
		yield.Point()
		to.PutAll(some)
		n -= len(some)
	}
}
