package ep

import (
	"godat/hw"
	"godat/internal/delivery"
	"godat/internal/release"
	"godat/internal/yield"
)

// CompleteSend takes the success of a send together with that of its receive. If both
// complete to one ring, one claim of two cells and one publication do for both events.
//
// As in CompleteOne, both slots are retired before a consumer can see an event. The caller
// completes both queues, as it would by two calls of CompleteOne.
func (q *queue) CompleteSend(id uint64, receiver hw.DirectSink, recvID uint64, n uint32) bool {
	p, ok := receiver.(*queue)
	if !ok {
		return false
	}
	s, received := &q.slots[uint32(id)&q.mask], &p.slots[uint32(recvID)&p.mask]
	to := s.to
	if to != received.to || to == nil {
		return false
	}
	r, taken := q.retired.Load(), p.retired.Load()
	if s.odd(hw.OpSend)|received.odd(hw.OpRecv)|(uint32(id)^r)&q.mask|(uint32(recvID)^taken)&p.mask|
		q.watched.Load()|p.watched.Load() != 0 || !to.HasRing() {
		return false
	}
	q.completer.Acquire()
	p.completer.Acquire()
	ring, first := to.ClaimAll(2)
	cell := ring.At(first)
	delivery.Success(&cell.Value, p.e, received.cookie, hw.OpRecv, n)
	delivery.Success(&ring.At(first+1).Value, q.e, s.cookie, hw.OpSend, n)
	release.Uint32(&p.retired, (taken+1)&ticketMask)
	release.Uint32(&q.retired, (r+1)&ticketMask)
	cell.PublishAll(first, 2)
	yield.Point()
	to.Note()
	to.Flush()
	p.completer.Release()
	q.completer.Release()
	return true
}
