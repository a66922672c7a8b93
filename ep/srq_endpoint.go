package ep

import (
	"godat/hw"
	"godat/hw/event"
	"godat/internal/delivery"
)

// checkSRQ returns what is wrong with a configuration that has a shared receive queue.
func (cfg *Config) checkSRQ(op string, a *Adapter) error {
	switch q := cfg.SRQ; {
	case q == nil:
		return nil
	case q.adapter != a:
		return hw.Errorf(op, hw.InvalidHandle, hw.HandleSRQ, "the shared receive queue is another adapter's")
	case q.pz != cfg.PZ:
		return hw.Errorf(op, hw.ProtectionViolation, hw.NoSubtype, "the shared receive queue is of another zone")
	case cfg.Attr == nil:
		return hw.Errorf(op, hw.InvalidParameter, hw.Arg7, "an endpoint with a shared receive queue needs attributes")
	}
	return nil
}

// countShared checks completions of receives from the shared queue against the watermarks.
func (q *queue) countShared(wcs []hw.WC) {
	n := len(wcs)
	if n > 0 && wcs[n-1].ID == q.endID {
		n--
	}
	q.box.cold.owner.tookShared(n)
}

// describeShared is describe of a receive from the shared queue. It retires there, in any
// order, and before its event can be seen.
func (q *queue) describeShared(ev *event.Event, wc *hw.WC) (to *delivery.Queue) {
	q.srq.mu.Lock()
	ev.Cookie, to = q.srq.retire(wc.ID&slotMask, q.feed)
	q.srq.mu.Unlock()
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
