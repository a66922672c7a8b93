package hwtest

import (
	"sync/atomic"

	"godat/hw"
)

// directSink implements [hw.DirectSink] as well.
type directSink struct{ sink }

// CompleteOne implements [hw.DirectSink].
func (s *directSink) CompleteOne(id uint64, op hw.Op, n uint32, flags hw.WCFlags) {
	s.Complete([]hw.WC{{ID: id, Op: op, Len: n, Flags: flags}})
}

// sinks makes the sinks of both queues.
func (e *end) sinks() (send, recv hw.Sink) {
	if e.host.rig.cfg.Direct {
		return &directSink{sink{end: e, queue: sendQueue}}, &directSink{sink{end: e, queue: recvQueue}}
	}
	return &sink{end: e, queue: sendQueue}, &sink{end: e, queue: recvQueue}
}

// postOne posts a plain request by PostOne, if the suite is to. It gives PostOne a copy
// of the segment, which it overwrites after the post: the request is executed by then.
func (e *end) postOne(wr *hw.SendWR) bool {
	if !e.host.rig.cfg.Direct || len(wr.SGL) != 1 || wr.SGL[0].Len == 0 || !hw.Ops(hw.OpSend, hw.OpWrite, hw.OpRead).Has(wr.Op) {
		return false
	}
	sge := wr.SGL[0]
	ok := e.qp.(hw.Direct).PostOne(wr.Op, wr.Flags, wr.ID, &sge, wr.RKey, wr.RemoteAddr)
	sge = hw.SGE{Addr: ^uint64(0), Len: 1, LKey: 0xdeadbeef}
	return ok
}

// recvOne posts a receive of one segment by RecvOne, if the suite is to.
func (e *end) recvOne(wr *hw.RecvWR) bool {
	if !e.host.rig.cfg.Direct || len(wr.SGL) != 1 || wr.SGL[0].Len == 0 {
		return false
	}
	direct := e.qp.(hw.Direct)
	ok := direct.RecvOne(wr.ID, &wr.SGL[0])
	new(atomic.Int32).Add(1) // an owner's token is released by such an instruction
	direct.Kick()
	return ok
}
