package ep

import "godat/hw"

// SetWatermark bounds the receives that the endpoint has taken from its shared
// receive queue and not completed. More than soft cause one asynchronous event with
// reason EPSoftHighWatermark, and no further one until SetWatermark is called
// again; more than hard break the connection. NoWatermark sets no bound. Receives
// whose completions the device reports together count as taken together. For an
// endpoint without a shared queue the watermarks have no effect.
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
	e.marks.setSoft(e, soft)
	return nil
}

// RecvQuery returns how many receives the endpoint has, and over how many places of
// its queue they spread. Without a shared queue those are the receives posted that
// have not completed; with one, the receives taken from it that have not completed.
// It answers to dat_ep_recv_query.
func (e *Endpoint) RecvQuery() (allocated, span int, err error) {
	const op = "ep.RecvQuery"
	if err := alive(op, e); err != nil {
		return 0, 0, err
	}
	q := &e.box.Recvs
	if e.srq != nil {
		n := q.Waiting()
		return n, n, nil
	}
	n := int(min(q.Outstanding(), q.Depth())) // some may have completed in between
	return n, n, nil
}
