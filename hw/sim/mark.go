package sim

import "godat/hw"

// mark is what Mark asks for; guarded by sim.mu.
type mark struct {
	due bool
	id  uint64
	at  uint64 // the requests before this one are to be done
}

// Mark implements [hw.Marker].
func (q *queuePair) Mark(id uint64) bool {
	q.enter("Mark")
	defer q.leave()
	if q.sq.mark.due {
		q.dev.violateLocked("Mark while another mark is due")
		return false
	}
	if q.draining || q.state != stateUp && !q.answering() {
		return false
	}
	q.sq.mark = mark{true, id, q.sq.tail}
	q.sq.reportMark()
	return true
}

// reportMark completes the mark, if the requests before it are done.
func (q *sendQueue) reportMark() {
	if m := &q.mark; m.due && q.head >= m.at {
		m.due = false
		q.qp.complete(sending, hw.WC{ID: m.id, Op: hw.OpMark}, false)
	}
}
