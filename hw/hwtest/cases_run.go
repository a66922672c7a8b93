package hwtest

import (
	"unsafe"

	"godat/hw"
)

var runCases = []contractCase{
	{"a plain request whose turn it is goes in a run", inRuns},
	{"receives and sends of a run lie apart in an array", inArrays},
}

// inRuns posts what every [hw.Runner] takes by PostRun and RecvRun. Without this case a queue
// pair that takes nothing would pass.
func inRuns(r *rig) {
	if !r.cfg.Runs {
		return
	}
	a, b := r.pair()
	src, back, dst := r.a.mem(64, hw.AllPrivileges), r.a.mem(64, hw.AllPrivileges), r.b.mem(64, hw.AllPrivileges)
	runner, sent := a.qp.(hw.Runner), 0
	// take posts a request, which has done with the segment then.
	take := func(flags hw.WRFlags, op hw.Op, m *region) {
		sge := m.all()
		r.must.Equal(1, runner.PostRun(op, hw.WRSignaled|flags, a.note(sendQueue, op, 64), &sge, 0, 1, dst.mr.RKey(), dst.base), op)
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
	r.must.Equal(1, b.qp.(hw.Runner).RecvRun(b.note(recvQueue, hw.OpRecv, 64), &in, 0, 1))
	fill(src.buf, 1)
	take(0, hw.OpSend, src)
	succeed()
	r.also.Equal(hw.StatusSuccess, b.received(0).Status)
	r.also.Equal(src.buf, dst.buf)

	fill(src.buf, 2)
	take(0, hw.OpWrite, src)
	take(0, hw.OpRead, back)
	succeed()
	r.also.Equal(src.buf, back.buf)

	fill(src.buf, 3)
	take(hw.WRMore, hw.OpWrite, src)
	take(0, hw.OpRead, back)
	succeed()
	r.also.Equal(src.buf, back.buf)

	fill(src.buf, 4)
	take(hw.WRMore, hw.OpWrite, src)
	take(hw.WRMore, hw.OpRead, back)
	r.also.Zero(runner.PostRun(hw.OpSend, 0, 0, nil, 0, 0, 0, 0), "a call without requests ends the run")
	succeed()
	r.also.Equal(src.buf, back.buf)
}

// inArrays posts receives and sends by RecvRun and PostRun, whose segments are parts of
// larger structures in an array.
func inArrays(r *rig) {
	if !r.cfg.Runs {
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
	r.must.Equal(messages, b.qp.(hw.Runner).RecvRun(first, &in[0].sge, stride, messages))
	first, out := run(a, sendQueue, hw.OpSend, src)
	r.must.Equal(messages, a.qp.(hw.Runner).PostRun(hw.OpSend, hw.WRSignaled, first, &out[0].sge, stride, messages, 0, 0))
	for i := range out {
		out[i].sge = nowhere
	}
	for i := range messages {
		r.also.Equal(hw.StatusSuccess, a.sent(i).Status)
		r.also.Equal(hw.StatusSuccess, b.received(i).Status)
	}
	r.also.Equal(src.buf, dst.buf)
}
