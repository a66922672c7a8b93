package hwtest

import "godat/hw"

// seriesSink implements [hw.SeriesSink] as well. It keeps each series to itself until its end,
// so that a case waits in vain for a completion of a series that the device does not end.
type seriesSink struct {
	sink
	kept []hw.WC
}

// CompleteOne implements [hw.SeriesSink].
func (s *seriesSink) CompleteOne(id uint64, op hw.Op, n uint32, flags hw.WCFlags) {
	s.kept = append(s.kept, hw.WC{ID: id, Op: op, Len: n, Flags: flags &^ hw.WCMore})
	if flags&hw.WCMore == 0 {
		s.Flush()
	}
}

// Flush implements [hw.SeriesSink].
func (s *seriesSink) Flush() {
	s.sink.Complete(s.kept)
	s.kept = s.kept[:0]
}

// Complete implements [hw.Sink].
func (s *seriesSink) Complete(wcs []hw.WC) {
	s.Flush()
	s.sink.Complete(wcs)
}

// sinksOf makes the sinks of both queues.
func sinksOf(e *end) (send, recv hw.Sink) {
	if e.host.rig.cfg.Runs {
		return &seriesSink{sink: sink{end: e, queue: sendQueue}}, &seriesSink{sink: sink{end: e, queue: recvQueue}}
	}
	return &sink{end: e, queue: sendQueue}, &sink{end: e, queue: recvQueue}
}

// plain reports whether the suite is to post a request in a run.
func (c *Config) plain(wr *hw.SendWR) bool {
	return c.Runs && len(wr.SGL) == 1 && wr.SGL[0].Len != 0 && hw.Ops(hw.OpSend, hw.OpWrite, hw.OpRead).Has(wr.Op)
}

// postRun posts the first of the requests in one run, if the suite is to, and returns how many
// it posted. It passes a copy of each segment, which it overwrites after the post: the queue
// pair has done with it.
func (e *end) postRun(wrs []hw.SendWR) (n int) {
	for n < len(wrs) && e.host.rig.cfg.plain(&wrs[n]) {
		wr := &wrs[n]
		sge, flags := wr.SGL[0], wr.Flags
		if n+1 < len(wrs) && e.host.rig.cfg.plain(&wrs[n+1]) {
			flags |= hw.WRMore
		}
		posted := e.qp.(hw.Runner).PostRun(wr.Op, flags, wr.ID, &sge, 0, 1, wr.RKey, wr.RemoteAddr)
		sge = nowhere
		if posted == 0 {
			return n
		}
		n++
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

// recvRun posts a receive of one segment by RecvRun, if the suite is to.
func (e *end) recvRun(wr *hw.RecvWR) bool {
	if !e.host.rig.cfg.Runs || len(wr.SGL) != 1 || wr.SGL[0].Len == 0 {
		return false
	}
	runner := e.qp.(hw.Runner)
	posted := runner.RecvRun(wr.ID, &wr.SGL[0], 0, 1)
	e.orders.Add(1)
	runner.Kick()
	return posted == 1
}
