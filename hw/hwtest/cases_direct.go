package hwtest

import (
	"unsafe"

	"godat/hw"
)

var directCases = []contractCase{
	{"a plain request whose turn it is goes the direct way", directly},
	{"receives and sends of a run lie apart in an array", inArrays},
}

// directly posts what every direct queue pair takes by PostOne, RecvOne and in a run.
// Without this case a queue pair that always returns false would pass.
func directly(r *rig) {
	if !r.cfg.Direct {
		return
	}
	a, b := r.pair()
	src, back, dst := r.a.mem(64, hw.AllPrivileges), r.a.mem(64, hw.AllPrivileges), r.b.mem(64, hw.AllPrivileges)
	direct, sent := a.qp.(hw.Direct), 0
	// take posts a request by PostOne or RunOne, which have done with the segment then.
	take := func(post func(hw.Op, hw.WRFlags, uint64, *hw.SGE, uint32, uint64) bool, op hw.Op, m *region) {
		sge := m.all()
		r.must.True(post(op, hw.WRSignaled, a.note(sendQueue, op, 64), &sge, dst.mr.RKey(), dst.base), op)
		sge = nowhere
		sent++
	}
	// succeed waits until as many requests have succeeded as were posted.
	completed := 0
	succeed := func() {
		for ; completed < sent; completed++ {
			r.also.Equal(hw.StatusSuccess, a.sent(completed).Status)
		}
	}

	in := dst.all()
	r.must.True(b.qp.(hw.Direct).RecvOne(b.note(recvQueue, hw.OpRecv, 64), &in))
	fill(src.buf, 1)
	take(direct.PostOne, hw.OpSend, src)
	succeed()
	r.also.Equal(hw.StatusSuccess, b.received(0).Status)
	r.also.Equal(src.buf, dst.buf)

	fill(src.buf, 2)
	take(direct.PostOne, hw.OpWrite, src)
	take(direct.PostOne, hw.OpRead, back)
	succeed()
	r.also.Equal(src.buf, back.buf)

	fill(src.buf, 3)
	r.must.True(direct.BeginRun())
	take(direct.RunOne, hw.OpWrite, src)
	take(direct.RunOne, hw.OpRead, back)
	direct.EndRun()
	succeed()
	r.also.Equal(src.buf, back.buf)
}

// inArrays posts receives and sends by RecvRun and RunSends, whose segments are parts of
// larger structures in an array.
func inArrays(r *rig) {
	if !r.cfg.Direct {
		return
	}
	const messages, size = 5, 16
	type slot struct {
		_   uint64
		sge hw.SGE
		_   [3]uint64
	}
	a, b := r.pair()
	src, dst := r.a.mem(messages*size, hw.LocalRead), r.b.mem(messages*size, hw.LocalWrite)
	fill(src.buf, 1)
	// run notes as many requests as there may be messages, and returns what a run of them
	// takes: the id of the first, and their slots.
	run := func(e *end, q direction, op hw.Op, m *region) (first uint64, slots []slot) {
		slots = make([]slot, messages)
		for i := range slots {
			slots[i].sge = hw.SGE{Addr: m.base + uint64(i*size), Len: size, LKey: m.mr.LKey()}
			if id := e.note(q, op, size); i == 0 {
				first = id
			}
		}
		return first, slots
	}
	stride := unsafe.Sizeof(slot{})
	first, in := run(b, recvQueue, hw.OpRecv, dst)
	r.must.Equal(messages, b.qp.(hw.Direct).RecvRun(first, &in[0].sge, stride, messages))
	direct := a.qp.(hw.Direct)
	first, out := run(a, sendQueue, hw.OpSend, src)
	r.must.True(direct.BeginRun())
	r.must.Equal(messages, direct.RunSends(hw.WRSignaled, first, &out[0].sge, stride, messages))
	for i := range out {
		out[i].sge = nowhere
	}
	direct.EndRun()
	for i := range messages {
		r.also.Equal(hw.StatusSuccess, a.sent(i).Status)
		r.also.Equal(hw.StatusSuccess, b.received(i).Status)
	}
	r.also.Equal(src.buf, dst.buf)
}
