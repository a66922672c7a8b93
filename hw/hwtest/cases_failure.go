package hwtest

import (
	"time"

	"godat/hw"
)

var failureCases = []contractCase{
	{"a message too long for its receive fails on both sides", tooLong},
	{"a send longer than Attr.MaxMessage fails with LocalLength", overlong},
	{"a send that finds no receive breaks at once when NotReady is 0", func(r *rig) {
		a, b := r.pair()
		out := a.post(sendOf())
		r.also.Contains(r.atTarget(hw.StatusReceiverNotReady), a.sent(out).Status)
		r.brokenBecause(a, b, hw.StatusReceiverNotReady)
	}},
	{"a send waits for a receive as long as NotReady says", waits},
	{"a send that waited in vain fails when NotReady has run out, or at once without Attr.NotReadyWait", waitsInVain},
	{"requests behind a send that waits wait too, in order", ifWaits(func(r *rig) {
		a, b := r.pair(notReady(hourLong))
		near, far := r.a.mem(8, hw.AllPrivileges), r.b.mem(8, hw.AllPrivileges)
		near.buf[0] = 1
		wrs := []hw.SendWR{sendOf(), sendOf(near.all())}
		if r.has(hw.OpWrite) {
			wrs = append(wrs, writeTo(far, 0, near.all()))
		}
		last := a.post(wrs...) + len(wrs) - 1
		first := b.recv()
		b.received(first)
		r.also.Equal(byte(0), far.buf[0])
		b.recv(far.all())
		r.also.Equal(hw.StatusSuccess, a.sent(last).Status)
	})},
	{"after a failure everything later on both queues is flushed, on both sides", flushedAfterFailure},
	{"requests before the one that fails run to completion", beforeFailure},
	{"one connection's failure is no other's, and both its ends get the cause", func(r *rig) {
		a, b := r.pair()
		c, d := r.pair()
		b.recv()
		bad := hw.SGE{Addr: 1, Len: 1}
		r.also.Equal(hw.StatusLocalProtection, a.sent(a.post(sendOf(bad))).Status)
		r.brokenBecause(a, b, hw.StatusLocalProtection)
		r.foundHere(a)
		r.also.Equal(hw.SidePeer, b.cause.Found, "%v", b.cause)
		roundTrip(r, c, d)
	}},
	{"a write with a wrong key, or without the privilege, breaks the connection, and the target found it", ifHas(hw.OpWrite, func(r *rig) {
		for _, wrong := range []uint32{1 << 8, 0} {
			a, b := r.pair()
			near, far := r.a.mem(8, hw.LocalRead), r.b.mem(8, hw.LocalWrite|hw.RemoteRead)
			wr := writeTo(far, 0, near.all())
			wr.RKey ^= wrong
			a.post(wr)
			r.brokenBecause(a, b, hw.StatusRemoteAccess)
			r.also.Equal(hw.SidePeer, a.cause.Found, "%v", a.cause)
		}
	})},
}

func tooLong(r *rig) {
	for _, c := range []struct {
		name string
		room []int
		n    int
	}{
		{"by one byte", []int{63}, 64},
		{"by far", []int{1}, 4096},
		{"for no segment at all", nil, 1},
		{"for several segments", []int{10, 0, 20}, 31},
	} {
		a, b := r.pair()
		src, dst := r.a.mem(c.n, hw.LocalRead), r.b.mem(room(c.room), hw.LocalWrite)
		fill(src.buf, 1)
		in := b.recv(cut(dst, c.room...)...)
		later := b.recv()
		out := a.post(sendOf(src.all()))
		r.also.Equal(hw.StatusLocalLength, b.received(in).Status, c.name)
		r.also.Contains(r.atTarget(hw.StatusRemoteResponder), a.sent(out).Status, c.name)
		r.brokenBecause(a, b, hw.StatusLocalLength, hw.StatusRemoteResponder)
		r.foundHere(b)
		over(a, b)
		r.also.Equal(hw.StatusFlushed, b.statuses(recvQueue)[later], c.name)
		off := 0
		for _, n := range append(c.room, 0) { // the bytes between the segments are unchanged
			r.also.Equal(make([]byte, canary), dst.buf[off:off+canary], c.name)
			off += canary + n
		}
	}
}

// mostGathered bounds the memory that overlong registers, in bytes.
const mostGathered = 64 << 20

func overlong(r *rig) {
	most := r.a.attr.MaxMessage
	segs := r.a.attr.MaxSendSegments
	size := int(most/uint64(segs)) + 1
	if uint64(size) > mostGathered/uint64(segs) || uint64(size) > r.a.attr.MaxMR {
		r.also.GreaterOrEqual(most, uint64(1<<20), "a limit beyond reach is at least a generous one")
		r.tb.Logf("a message of %d bytes is more than this case gathers", most)
		return
	}
	a, b := r.pair(segments(segs))
	src := r.a.mem(size, hw.LocalRead)
	var sgl []hw.SGE
	for range segs {
		sgl = append(sgl, src.all())
	}
	in := b.recv()
	r.also.Equal(hw.StatusLocalLength, a.sent(a.post(sendOf(sgl...))).Status)
	r.broken(a, b)
	b.over()
	r.also.Equal(hw.StatusFlushed, b.statuses(recvQueue)[in])
}

// shortWait is a NotReady that runs out during a case.
const shortWait = 30 * time.Millisecond

func waits(r *rig) {
	a, b := r.pair(notReady(hourLong))
	if !r.a.attr.NotReadyWait {
		out := a.post(sendOf())
		r.also.Contains(r.atTarget(hw.StatusReceiverNotReady), a.sent(out).Status, "NotReady has no effect")
		r.broken(a, b)
		return
	}
	src, dst, far := r.a.mem(8, hw.LocalRead), r.b.mem(8, hw.LocalWrite), r.b.mem(8, hw.AllPrivileges)
	for i := range 3 {
		fill(src.buf, byte(i))
		out := a.post(sendOf(src.all()))
		behind := a.post(writeTo(far, 0, src.all()))
		a.mustWait(out)
		a.mustWait(behind)
		r.also.NotEqual(src.buf, far.buf, "the write waits behind the send")
		in := b.recv(dst.all())
		r.must.Equal(hw.StatusSuccess, b.received(in).Status)
		r.must.Equal(hw.StatusSuccess, a.sent(out).Status)
		r.must.Equal(hw.StatusSuccess, a.sent(behind).Status)
		r.also.Equal(src.buf, dst.buf)
	}
}

func waitsInVain(r *rig) {
	a, b := r.pair(notReady(shortWait))
	before := time.Now()
	out := a.post(sendOf())
	later := a.post(sendOf())
	first := a.sent(out).Status
	r.also.Contains(r.atTarget(hw.StatusReceiverNotReady), first)
	if r.a.attr.NotReadyWait {
		r.also.GreaterOrEqual(time.Since(before), shortWait)
	}
	r.broken(a, b)
	a.over()
	may := r.atTarget(hw.StatusFlushed)
	if first == hw.StatusSuccess { // it completed early, so the next one may get the status
		may = append(may, hw.StatusReceiverNotReady)
	}
	r.also.Contains(may, a.statuses(sendQueue)[later])
}

func flushedAfterFailure(r *rig) {
	a, b := r.pair()
	src := r.a.mem(8, hw.LocalRead)
	for range 3 {
		a.recv()
		b.recv()
	}
	bad := sendOf(hw.SGE{Addr: src.base - 1, Len: 8, LKey: src.mr.LKey()})
	at := a.post(sendOf(src.sge(0, 0)), bad, sendOf(), hw.SendWR{Op: hw.OpSend}, sendOf())
	r.broken(a, b)
	over(a, b)
	r.also.Equal([]hw.Status{hw.StatusSuccess, hw.StatusLocalProtection, hw.StatusFlushed, hw.StatusFlushed, hw.StatusFlushed}, a.statuses(sendQueue)[at:])
	r.also.Equal([]hw.Status{hw.StatusFlushed, hw.StatusFlushed, hw.StatusFlushed}, a.statuses(recvQueue))
	r.also.Equal([]hw.Status{hw.StatusSuccess, hw.StatusFlushed, hw.StatusFlushed}, b.statuses(recvQueue))
}

func beforeFailure(r *rig) {
	a, b := r.pair()
	near, far := r.a.mem(1<<16, hw.AllPrivileges), r.b.mem(1<<16, hw.AllPrivileges)
	fill(near.buf, 5)
	var wrs []hw.SendWR
	for _, p := range r.probes(true) {
		wrs = append(wrs, rdma(p.op, far, 0, near.all()))
	}
	b.recv()
	wrs = append(wrs, sendOf(), sendOf(hw.SGE{Addr: 1, Len: 1}))
	last := a.post(wrs...) + len(wrs) - 1
	r.also.Equal(hw.StatusLocalProtection, a.sent(last).Status)
	for i, s := range a.statuses(sendQueue)[:last] {
		r.also.Equal(hw.StatusSuccess, s, "request %d", i)
	}
	r.broken(a, b)
}
