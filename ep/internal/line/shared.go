package line

import (
	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
)

// SetShared sets the queue that receives come from, in place of slots. The holder calls it, or who makes the
// mailbox.
func (q *Queue) SetShared(from Shared) { q.shared = from }

// Shared is what SetShared was given.
func (q *Queue) Shared() Shared { return q.shared }

// Waiting is how many completions wait until ESTABLISHED is announced.
func (q *Queue) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// countShared tells how many receives of the shared queue were taken together.
func (q *Queue) countShared(wcs []hw.WC) {
	n := len(wcs)
	if n > 0 && wcs[n-1].ID == q.endID {
		n--
	}
	q.box.cold.owner.TookShared(n)
}

// describeShared is describe of a receive from the shared queue. It retires there, in any
// order, and before its event can be seen.
func (q *Queue) describeShared(ev *event.Event, wc *hw.WC) (to *delivery.Queue) {
	ev.Cookie, to = q.shared.Take(wc.ID)
	q.countReport(hw.OpRecv, wc)
	ev.Number, ev.Status, ev.Op, ev.Flags = event.DTOCompletion, wc.Status, hw.OpRecv, 0
	ev.Length, ev.Key = 0, 0
	ev.Source, ev.Data = q.box.source, nil
	if wc.Status == hw.StatusSuccess {
		ev.Length = wc.Len
		q.received(ev, wc)
	} else if wc.Status == hw.StatusFlushed {
		q.box.explain(ev)
	}
	return to
}
