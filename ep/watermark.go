package ep

import (
	"sync/atomic"

	"godat/evd"
	"godat/hw"
	"godat/internal/delivery"
)

// watermarks bound the receives that an endpoint has taken from a shared queue and
// not completed.
type watermarks struct {
	soft, hard atomic.Int64       // NoWatermark: none
	full       delivery.AsyncNode // that the soft one was passed
}

func (w *watermarks) init(e *Endpoint, soft int) {
	w.full.Event = evd.Event{Number: evd.AsyncEPBroken, Source: e, Data: evd.EPSoftHighWatermark}
	w.soft.Store(int64(soft))
	w.hard.Store(NoWatermark)
}

// SetWatermark bounds the receives that the endpoint has taken from its shared
// receive queue and not completed: when there are more than soft, there is an
// asynchronous event with reason EPSoftHighWatermark, once, until SetWatermark is
// called again; with more than hard the connection breaks. NoWatermark sets no
// bound. What completes at a time was taken at a time. An endpoint without a
// shared queue never takes more than it was given, and nothing happens.
// It answers to dat_ep_set_watermark.
func (e *Endpoint) SetWatermark(soft, hard int) error {
	const op = "ep.SetWatermark"
	if err := alive(op, e); err != nil {
		return err
	}
	for i, mark := range [...]int{soft, hard} {
		if mark < NoWatermark {
			return hw.Errorf(op, hw.InvalidParameter, hw.Arg2+hw.Subtype(i), "a watermark of %d", mark)
		}
	}
	e.ctl.Lock()
	defer e.ctl.Unlock()
	e.profile.mu.Lock()
	e.profile.attr.SoftHighWatermark = soft
	e.profile.mu.Unlock()
	e.marks.hard.Store(int64(hard))
	e.marks.soft.Store(int64(soft))
	return nil
}

// taken looks at the watermarks, given how many receives were taken and have not
// completed. It reports whether there are more than the hard one.
func (w *watermarks) taken(async *evd.Dispatcher, n int) (overrun bool) {
	if soft := w.soft.Load(); soft != NoWatermark && int64(n) > soft && w.soft.CompareAndSwap(soft, NoWatermark) {
		wiring(async).PutAsync(&w.full)
	}
	hard := w.hard.Load()
	return hard != NoWatermark && int64(n) > hard
}

// RecvQuery counts the receives that the endpoint has, and says over how many
// places of its queue they spread. Of its own those are posted and have not
// completed; of a shared queue's, it has taken them and they have not completed.
// It answers to dat_ep_recv_query.
func (e *Endpoint) RecvQuery() (allocated, span int, err error) {
	const op = "ep.RecvQuery"
	if err := alive(op, e); err != nil {
		return 0, 0, err
	}
	q := &e.box.recvs
	if q.srq != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		return len(q.waiting), len(q.waiting), nil
	}
	n := int((q.tail(e.box.word.Load()) - q.retired.Load()) & ticketMask)
	if n > int(q.depth.Load()) {
		n = 0 // some completed in between
	}
	return n, n, nil
}
