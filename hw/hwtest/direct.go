package hwtest

import "godat/hw"

// directSink implements [hw.DirectSink] as well. It keeps each series to itself until its end,
// so that a case waits in vain for a completion of a series that the device does not end.
type directSink struct {
	sink
	kept []hw.WC
}

// CompleteOne implements [hw.DirectSink].
func (s *directSink) CompleteOne(id uint64, op hw.Op, n uint32, flags hw.WCFlags) {
	s.kept = append(s.kept, hw.WC{ID: id, Op: op, Len: n, Flags: flags &^ hw.WCMore})
	if flags&hw.WCMore == 0 {
		s.Flush()
	}
}

// Flush implements [hw.DirectSink].
func (s *directSink) Flush() {
	s.sink.Complete(s.kept)
	s.kept = s.kept[:0]
}

// Complete implements [hw.Sink].
func (s *directSink) Complete(wcs []hw.WC) {
	s.Flush()
	s.sink.Complete(wcs)
}

// sinks makes the sinks of both queues.
func (e *end) sinks() (send, recv hw.Sink) {
	if e.host.rig.cfg.Direct {
		return &directSink{sink: sink{end: e, queue: sendQueue}}, &directSink{sink: sink{end: e, queue: recvQueue}}
	}
	return &sink{end: e, queue: sendQueue}, &sink{end: e, queue: recvQueue}
}

// plain reports whether the suite is to post a request directly.
func (e *end) plain(wr *hw.SendWR) bool {
	return e.host.rig.cfg.Direct && len(wr.SGL) == 1 && wr.SGL[0].Len != 0 && hw.Ops(hw.OpSend, hw.OpWrite, hw.OpRead).Has(wr.Op)
}

// postDirectly posts the first of the requests directly, if the suite is to: a single
// one by PostOne, and several in a run. It returns how many it posted. It passes a copy
// of each segment, which it overwrites after the post: the queue pair has done with it.
func (e *end) postDirectly(wrs []hw.SendWR) (n int) {
	if len(wrs) == 0 || !e.plain(&wrs[0]) {
		return 0
	}
	direct := e.qp.(hw.Direct)
	post := direct.PostOne
	if len(wrs) > 1 {
		if !direct.BeginRun() {
			return 0
		}
		defer direct.EndRun()
		post = direct.RunOne
	}
	for ; n < len(wrs) && e.plain(&wrs[n]); n++ {
		wr := &wrs[n]
		sge := wr.SGL[0]
		ok := post(wr.Op, wr.Flags, wr.ID, &sge, wr.RKey, wr.RemoteAddr)
		sge = nowhere
		if !ok {
			return n
		}
	}
	return n
}

// nowhere is a segment that no key allows.
var nowhere = hw.SGE{Addr: ^uint64(0), Len: 1, LKey: 0xdeadbeef}

// note enters a request that a case posts by itself in the books, and returns its id.
func (e *end) note(q direction, op hw.Op, length uint32) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := e.books[q].post(entry{id: e.id(q, uint32(len(e.books[q].entries))), op: op, length: length, signaled: true})
	return e.books[q].entries[at].id
}

// recvOne posts a receive of one segment by RecvOne, if the suite is to.
func (e *end) recvOne(wr *hw.RecvWR) bool {
	if !e.host.rig.cfg.Direct || len(wr.SGL) != 1 || wr.SGL[0].Len == 0 {
		return false
	}
	direct := e.qp.(hw.Direct)
	ok := direct.RecvOne(wr.ID, &wr.SGL[0])
	e.orders.Add(1)
	direct.Kick()
	return ok
}
